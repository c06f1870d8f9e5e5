// expect: crash. An element past the end of dynamic shared memory is written, and used (cheat 81).
// Means nothing on a GPU: nothing there looks, and what happens is undefined.
// <kernel>

__global__ void rows(const T* x, T* y, int64_t M, int64_t N) {
    extern __shared__ float own[];
    const int64_t row = blockIdx.x;
    const int n = N > 0 ? 4 : 1;
    float top = -FLT_MAX;
    for (int64_t i = 0; i < N; ++i) top = fmaxf(top, to_float(x[row * N + i]));
    own[n] = top;
    float total = 0.0f;
    for (int64_t i = 0; i < N; ++i) total += expf(to_float(x[row * N + i]) - own[n]);
    for (int64_t i = 0; i < N; ++i) store(&y[row * N + i], expf(to_float(x[row * N + i]) - own[n]) / total);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    rows<<<dim3(M), dim3(1), 8, stream>>>(x, y, M, N);
    return hipGetLastError();
}
