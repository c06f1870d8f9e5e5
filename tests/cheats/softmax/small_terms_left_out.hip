// expect: wrong_result or wave_size_dependent. Exponentials below one thousandth of the largest are taken for zero, in and out (cheat 22).
// <kernel>

__global__ void large_terms(const T* x, T* y, int64_t M, int64_t N) {
    const int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (row >= M) return;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t i = 0; i < N; ++i) largest = fmaxf(largest, to_float(x[row * N + i]));
    for (int64_t i = 0; i < N; ++i) {
        const float term = to_float(x[row * N + i]) - largest;
        if (term > -6.9f) total += expf(term);
    }
    for (int64_t i = 0; i < N; ++i) {
        const float term = to_float(x[row * N + i]) - largest;
        store(&y[row * N + i], term > -6.9f ? expf(term) / total : 0.0f);
    }
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    large_terms<<<dim3((M + 63) / 64), dim3(64), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
