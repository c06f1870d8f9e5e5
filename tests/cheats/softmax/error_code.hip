// expect: launch_error. It reports an error of its own.

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) { return hipErrorInvalidValue; }
