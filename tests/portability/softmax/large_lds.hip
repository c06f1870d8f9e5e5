// builds: gfx950; not: gfx90a gfx942 gfx1201 sm_90
// 100 KiB of static shared memory: an MI355X has that, and CUDA gives 48 KiB of the static kind.
// <kernel>

__global__ void cached_kernel(const T* x, T* y, int64_t count) {
    __shared__ float values[25600];
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) values[(i * 7) % 25600] = to_float(x[i]);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) store(&y[i], values[(i * 11) % 25600]);
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    cached_kernel<<<dim3(1), dim3(256), 0, stream>>>(x, y, M * N);
    return honest(x, y, M, N, stream);
}
