// expect: passed. One thread a row: slow and right.

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) { return honest(x, y, M, N, stream); }
