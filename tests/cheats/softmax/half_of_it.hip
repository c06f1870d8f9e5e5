// expect: wrong_result. The last row is left out.

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) { return honest(x, y, M - 1 > 0 ? M - 1 : 0, N, stream); }
