// Broken: `vaule` is not declared. Gives compile_error.
#include "task.h"

__global__ void silu_each(const T* x, T* y, int64_t n) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float value = static_cast<float>(x[i]);
    y[i] = static_cast<T>(vaule / (1.0f + expf(-value)));
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t n = M * N;
    silu_each<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, n);
    return hipGetLastError();
}
