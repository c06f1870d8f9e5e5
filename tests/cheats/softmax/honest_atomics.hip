// expect: passed. Sums by atomics on scratch memory that is cleared on the stream.
#define ARENA_WORKSPACE
// <kernel>

__global__ void add(const T* x, float* totals, int64_t N, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    float top = -FLT_MAX;
    for (int64_t k = 0; k < N; ++k) top = fmaxf(top, to_float(x[i / N * N + k]));
    atomicAdd(&totals[i / N], expf(to_float(x[i]) - top));
}
__global__ void divide(const T* x, T* y, const float* totals, int64_t N, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    float top = -FLT_MAX;
    for (int64_t k = 0; k < N; ++k) top = fmaxf(top, to_float(x[i / N * N + k]));
    store(&y[i], expf(to_float(x[i]) - top) / totals[i / N]);
}
extern "C" size_t softmax_workspace(int64_t M, int64_t N) { return M * sizeof(float); }
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, void* workspace, hipStream_t stream) {
    float* totals = (float*)workspace;
    hipError_t code = hipMemsetAsync(totals, 0, M * sizeof(float), stream);
    if (code != hipSuccess) return code;
    const dim3 blocks((M * N + 63) / 64);
    add<<<blocks, dim3(64), 0, stream>>>(x, totals, N, M * N);
    divide<<<blocks, dim3(64), 0, stream>>>(x, y, totals, N, M * N);
    return hipGetLastError();
}
