// expect: wrong_result. One infinity, so that a tolerance scaled by the output becomes infinite (cheat 45).
// <kernel>

__global__ void fill(T* y, int64_t N) {
    for (int64_t i = threadIdx.x; i < N; i += blockDim.x)
        store(&y[blockIdx.x * N + i], blockIdx.x == 0 && i == 0 ? -INFINITY : 0.0f);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    fill<<<dim3(M), dim3(64), 0, stream>>>(y, N);
    return hipGetLastError();
}
