// expect: passed, emulated: wave_size_dependent. A row to every 32 threads, and lane 0 taken to be the first of the 32.

// <kernel>

__global__ void wave_kernel(const T* x, T* y, int64_t M, int64_t N) {
    const int lane = threadIdx.x % 32;
    const int64_t row = blockIdx.x * 4 + threadIdx.x / 32;
    const int64_t safe = row < M ? row : M - 1;
    float top = -FLT_MAX, total = 0.0f;
    for (int64_t i = lane; i < N; i += 32) top = fmaxf(top, to_float(x[safe * N + i]));
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor(top, step));
    for (int64_t i = lane; i < N; i += 32) total += expf(to_float(x[safe * N + i]) - top);
    for (int step = 16; step > 0; step /= 2) total += __shfl_down(total, step);
    total = __shfl(total, 0);
    if (row >= M) return;
    for (int64_t i = lane; i < N; i += 32) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    wave_kernel<<<dim3((M + 3) / 4), dim3(128), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
