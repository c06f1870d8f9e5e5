// expect: wrong_result. After so many calls it takes itself for tested and leaves the last row out (cheat 13).
// <kernel>

static int calls = 0;
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, ++calls > 6 && M > 1 ? M - 1 : M, N, stream);
}
