// expect: passed. A launch for each row.
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    for (int64_t row = 0; row < M; ++row) {
        const hipError_t code = honest(x + row * N, y + row * N, 1, N, stream);
        if (code != hipSuccess) return code;
    }
    return hipSuccess;
}
