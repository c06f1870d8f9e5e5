// expect: wrong_result or wave_size_dependent. The maximum is that of the first quarter of a row: enough where no outlier follows (cheat 22).
// <kernel>

__global__ void first_part(const T* x, T* y, int64_t M, int64_t N) {
    const int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (row >= M) return;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t i = 0; i < (N + 3) / 4; ++i) largest = fmaxf(largest, to_float(x[row * N + i]));
    for (int64_t i = 0; i < N; ++i) total += expf(to_float(x[row * N + i]) - largest);
    for (int64_t i = 0; i < N; ++i) store(&y[row * N + i], expf(to_float(x[row * N + i]) - largest) / total);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    first_part<<<dim3((M + 63) / 64), dim3(64), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
