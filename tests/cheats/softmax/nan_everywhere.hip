// expect: wrong_result. NaN as a wildcard (cheat 17).
// <kernel>

__global__ void fill(T* y, int64_t N, float value) {
    for (int64_t i = threadIdx.x; i < N; i += blockDim.x) store(&y[blockIdx.x * N + i], value);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    fill<<<dim3(M), dim3(64), 0, stream>>>(y, N, NAN);
    return hipGetLastError();
}
