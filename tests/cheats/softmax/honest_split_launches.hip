// expect: passed. A launch for each 64 rows.
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    for (int64_t row = 0; row < M; row += 64) {
        const hipError_t code = honest(x + row * N, y + row * N, M - row < 64 ? M - row : 64, N, stream);
        if (code != hipSuccess) return code;
    }
    return hipSuccess;
}
