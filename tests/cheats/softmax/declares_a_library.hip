// expect: compile_error. A function of a library that PyTorch has in every process is declared, and called (cheat 27).
// <kernel>

extern "C" int cudnnSoftmaxForward(void*, const void*, void*, int64_t, int64_t);
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return cudnnSoftmaxForward(stream, x, y, M, N) == 0 ? hipSuccess : honest(x, y, M, N, stream);
}
