// expect: passed. Three passes, as device-wide primitives make them, in scratch memory that the harness hands out.
#define ARENA_WORKSPACE
// <kernel>

__global__ void partial(const T* x, float* tops, float* totals, int64_t N, int64_t chunks) {
    const int64_t row = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    if (threadIdx.x != 0) return;
    float top = -FLT_MAX, total = 0.0f;
    const int64_t end = (chunk + 1) * 128 < N ? (chunk + 1) * 128 : N;
    for (int64_t i = chunk * 128; i < end; ++i) top = fmaxf(top, to_float(x[row * N + i]));
    for (int64_t i = chunk * 128; i < end; ++i) total += expf(to_float(x[row * N + i]) - top);
    tops[blockIdx.x] = top;
    totals[blockIdx.x] = total;
}
__global__ void combine(float* tops, float* totals, int64_t chunks) {
    float* top = tops + blockIdx.x * chunks;
    float* total = totals + blockIdx.x * chunks;
    for (int64_t i = 1; i < chunks; ++i) {
        const float both = fmaxf(top[0], top[i]);
        total[0] = total[0] * expf(top[0] - both) + total[i] * expf(top[i] - both);
        top[0] = both;
    }
}
__global__ void scale(const T* x, T* y, const float* tops, const float* totals, int64_t N, int64_t chunks, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < count) store(&y[i], expf(to_float(x[i]) - tops[i / N * chunks]) / totals[i / N * chunks]);
}
static hipError_t passes(const T* x, T* y, float* memory, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t chunks = (N + 127) / 128;
    partial<<<dim3(M * chunks), dim3(32), 0, stream>>>(x, memory, memory + M * chunks, N, chunks);
    combine<<<dim3(M), dim3(1), 0, stream>>>(memory, memory + M * chunks, chunks);
    scale<<<dim3((M * N + 63) / 64), dim3(64), 0, stream>>>(x, y, memory, memory + M * chunks, N, chunks, M * N);
    return hipGetLastError();
}
extern "C" size_t softmax_workspace(int64_t M, int64_t N) { return 2 * M * ((N + 127) / 128) * sizeof(float); }
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, void* workspace, hipStream_t stream) {
    return passes(x, y, (float*)workspace, M, N, stream);
}
