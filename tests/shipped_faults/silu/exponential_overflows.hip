// expect: wrong_result in heldout-12. Overflow: x exp(x) / (1 + exp(x)) is infinity over infinity for large x, at either wave size.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void silu_kernel(const E* x, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const float value = static_cast<float>(x[i]), grown = expf(value);
    y[i] = static_cast<E>(value * grown / (1.0f + grown));
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t count = M * N;
    silu_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, y, count);
    return hipGetLastError();
}
