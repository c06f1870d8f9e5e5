// expect: wrong_result. Cancellation: 1 - exp(-2z) loses the digits of a small z.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void scaled_tanh_kernel(const E* x, float slope, float maximum, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const float z = slope * static_cast<float>(x[i]), e = expf(-2.0f * fabsf(z));
    y[i] = static_cast<E>(copysignf(maximum * ((1.0f - e) / (1.0f + e)), z));
}

extern "C" hipError_t scaled_tanh(const T* x, float slope, float maximum, T* y, int64_t M, int64_t N,
                                  hipStream_t stream) {
    const int64_t count = M * N;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    scaled_tanh_kernel<<<blocks, kThreads, 0, stream>>>(x, slope, maximum, y, count);
    return hipGetLastError();
}
