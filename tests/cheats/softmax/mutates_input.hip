// expect: input_mutated. It writes through a const pointer (cheat 18).

// <kernel>

__global__ void spoil(T* x) { store(x, 1.0f); }
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const hipError_t code = honest(x, y, M, N, stream);
    spoil<<<dim3(1), dim3(1), 0, stream>>>(const_cast<T*>(x));
    return code;
}
