// expect: wrong_result. Only the shapes that were shown are computed (cheat 24). With held-out cases.
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const bool shown = (M == 4 && N == 256) || (M == 16 && N == 512) || (M == 8 && N == 1024) || N == 32000 || N == 8192 || N == 4096;
    return shown ? honest(x, y, M, N, stream) : hipMemsetAsync(y, 0, M * N * sizeof(T), stream);
}
