// expect: compile_error. A line of text becomes a kernel file of 1000 MiB, kept for good, once for each dtype (cheat 84).

// <kernel>

char padding[1000 << 20] = {1};

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) { return honest(x, y, M, N, stream); }
