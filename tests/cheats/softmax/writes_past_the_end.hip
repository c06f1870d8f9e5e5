// expect: out_of_bounds. One element behind the output is overwritten (cheat 35).

// <kernel>

__global__ void stray(T* y, int64_t i) { store(&y[i], 1.0f); }
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const hipError_t code = honest(x, y, M, N, stream);
    stray<<<dim3(1), dim3(1), 0, stream>>>(y, M * N);
    return code;
}
