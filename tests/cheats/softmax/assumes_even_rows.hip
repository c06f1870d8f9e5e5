// expect: wrong_result. The last row is taken to be one of a pair: true of all seen cases (cheat 25). With held-out cases.
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    if (M % 2) (void)hipMemsetAsync(y + (M - 1) * N, 0, N * sizeof(T), stream);
    return M > 1 ? honest(x, y, M / 2 * 2, N, stream) : hipSuccess;
}
