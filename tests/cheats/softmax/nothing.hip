// expect: wrong_result. It says hipSuccess and does nothing.

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) { return hipSuccess; }
