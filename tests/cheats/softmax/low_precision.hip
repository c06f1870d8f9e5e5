// expect: wrong_result. Exponentials are taken of numbers rounded to eight bits (cheat 21).
// <kernel>

__global__ void coarse(T* y, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < count) store(&y[i], __bfloat162float(__float2bfloat16(to_float(y[i]) * 0.98f)));
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const hipError_t code = honest(x, y, M, N, stream);
    coarse<<<dim3((M * N + 63) / 64), dim3(64), 0, stream>>>(y, M * N);
    return code;
}
