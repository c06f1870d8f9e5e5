// builds: gfx90a gfx942 gfx950 gfx1201 sm_90
// A builtin of each vendor behind the macros by which HIP code tells them apart.
// <kernel>

__device__ inline float fast_exp2(float v) {
#if defined(__HIP_PLATFORM_AMD__) && defined(__HIP_DEVICE_COMPILE__)
    return __builtin_amdgcn_exp2f(v);
#elif defined(__HIP_PLATFORM_NVIDIA__)
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(v));
    return power;
#else
    return exp2f(v);
#endif
}

__global__ void power_kernel(const T* x, T* y, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < count) store(&y[i], fast_exp2(to_float(x[i])));
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    power_kernel<<<dim3((M * N + 255) / 256), dim3(256), 0, stream>>>(x, y, M * N);
    return honest(x, y, M, N, stream);
}
