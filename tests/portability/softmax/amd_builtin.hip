// builds: gfx90a gfx942 gfx950 gfx1201; not: sm_90
// Lanes exchange values by an AMD builtin.
// <kernel>

__global__ void swizzle_kernel(const T* x, T* y, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int bits = __builtin_amdgcn_ds_swizzle(__float_as_int(to_float(x[i])), 0x041F);
    store(&y[i], __int_as_float(bits));
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    swizzle_kernel<<<dim3((M * N + 255) / 256), dim3(256), 0, stream>>>(x, y, M * N);
    return honest(x, y, M, N, stream);
}
