// expect: wrong_result. Cancellation: half of one plus tanh is 0 where the sigmoid is small.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void silu_kernel(const E* x, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float value = static_cast<float>(x[i]);
    y[i] = static_cast<E>(value * (0.5f + 0.5f * tanhf(0.5f * value)));
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t count = M * N;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    silu_kernel<<<blocks, kThreads, 0, stream>>>(x, y, count);
    return hipGetLastError();
}
