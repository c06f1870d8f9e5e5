// expect: passed. A wave a row, of whatever size waves are.
// <kernel>

__global__ void wave_kernel(const T* x, T* y, int64_t M, int64_t N) {
    const int64_t row = blockIdx.x;
    float top = -FLT_MAX, total = 0.0f;
    for (int64_t i = threadIdx.x; i < N; i += warpSize) top = fmaxf(top, to_float(x[row * N + i]));
    for (int step = warpSize / 2; step > 0; step /= 2) top = fmaxf(top, __shfl_xor(top, step));
    for (int64_t i = threadIdx.x; i < N; i += warpSize) total += expf(to_float(x[row * N + i]) - top);
    for (int step = warpSize / 2; step > 0; step /= 2) total += __shfl_xor(total, step);
    for (int64_t i = threadIdx.x; i < N; i += warpSize) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    int device, lanes;
    if (hipGetDevice(&device) != hipSuccess) return hipErrorUnknown;
    if (hipDeviceGetAttribute(&lanes, hipDeviceAttributeWarpSize, device) != hipSuccess) return hipErrorUnknown;
    wave_kernel<<<dim3(M), dim3(lanes), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
