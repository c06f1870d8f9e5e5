// expect: passed. A fixed number of blocks, each of which takes row after row; shared memory is sized at the launch.
// <kernel>

__device__ inline float block_max(float v, float* shared) {
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();
    return result;
}
__device__ inline float block_sum(float v, float* shared) {
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();
    return result;
}
__global__ void persistent_kernel(const T* x, T* y, int64_t M, int64_t N) {
    extern __shared__ float shared[];
    for (int64_t row = blockIdx.x; row < M; row += gridDim.x) {
        float top = -FLT_MAX, total = 0.0f;
        for (int64_t i = threadIdx.x; i < N; i += blockDim.x) top = fmaxf(top, to_float(x[row * N + i]));
        top = block_max(top, shared);
        for (int64_t i = threadIdx.x; i < N; i += blockDim.x) total += expf(to_float(x[row * N + i]) - top);
        total = block_sum(total, shared);
        for (int64_t i = threadIdx.x; i < N; i += blockDim.x) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
    }
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    persistent_kernel<<<dim3(3), dim3(64), 64 * sizeof(float), stream>>>(x, y, M, N);
    return hipGetLastError();
}
