// Broken: takes 32-bit sizes where task.h declares 64-bit ones. Gives compile_error.
#include "task.h"

__global__ void product(const T* a, const T* b, T* c, int m, int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        const float doubled = 2.0f * static_cast<float>(b[static_cast<int64_t>(i) * n + column]);
        sum += static_cast<float>(a[static_cast<int64_t>(row) * k + i]) * doubled;
    }
    c[static_cast<int64_t>(row) * n + column] = static_cast<T>(sum);
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int M, int N, int K, hipStream_t stream) {
    product<<<dim3((N + 127) / 128, M), 128, 0, stream>>>(a, b, c, M, N, K);
    return hipGetLastError();
}
