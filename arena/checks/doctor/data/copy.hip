// Copies, always with the same number of threads: K times as much takes K times as long, but for what a launch costs.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kBlocks = 2048;

__global__ void copy_kernel(const float* x, float* y, int64_t count) {
    const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count; i += threads) y[i] = x[i];
}

extern "C" hipError_t copy(const float* x, float* y, int64_t K, int64_t N, hipStream_t stream) {
    copy_kernel<<<dim3(kBlocks), dim3(kThreads), 0, stream>>>(x, y, K * N);
    return hipGetLastError();
}
