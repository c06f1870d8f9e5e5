// expect: compile_error. The sizes come as int, against task.h.

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int M, int N, hipStream_t stream) { return honest(x, y, M, N, stream); }
