// expect: wrong_result in heldout-05. Overflow: (exp(2x) - 1) / (exp(2x) + 1) is infinity over infinity for large x.
#include "task.h"

#include <math.h>

constexpr int kThreads = 128;

template <typename E>
__global__ void tanh_kernel(const E* x, float slope, float maximum, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const float grown = expf(2.0f * slope * static_cast<float>(x[i]));
    y[i] = static_cast<E>(maximum * (grown - 1.0f) / (grown + 1.0f));
}

extern "C" hipError_t scaled_tanh(const T* x, float slope, float maximum, T* y, int64_t M, int64_t N,
                                  hipStream_t stream) {
    const int64_t count = M * N;
    tanh_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, slope, maximum,
                                                                                                   y, count);
    return hipGetLastError();
}
