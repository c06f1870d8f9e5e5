// expect: passed. The maximum and the sum in a single pass over the row.
// <kernel>

__global__ void online_kernel(const T* x, T* y, int64_t M, int64_t N) {
    const int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (row >= M) return;
    float top = -FLT_MAX, total = 0.0f;
    for (int64_t i = 0; i < N; ++i) {
        const float v = to_float(x[row * N + i]);
        const float higher = fmaxf(top, v);
        total = total * expf(top - higher) + expf(v - higher);
        top = higher;
    }
    for (int64_t i = 0; i < N; ++i) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    online_kernel<<<dim3((M + 31) / 32), dim3(32), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
