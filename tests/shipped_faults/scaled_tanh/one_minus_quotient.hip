// expect: wrong_result in heldout-19. Cancellation: 1 - 2 / (exp(2u) + 1) where u is close to 0.
// Scaled hyperbolic tangent by one exponential, which may overflow: 1 - 2 / inf is 1. A grid-stride loop.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void scaled_tanh_kernel(const E* x, float slope, float maximum, E* y, int64_t count) {
    const float twice = 2.0f * slope;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const float power = expf(twice * static_cast<float>(x[i]));
        y[i] = static_cast<E>(maximum * (1.0f - 2.0f / (power + 1.0f)));
    }
}

extern "C" hipError_t scaled_tanh(const T* x, float slope, float maximum, T* y, int64_t M, int64_t N,
                                  hipStream_t stream) {
    const int64_t count = M * N;
    const int64_t wanted = (count + kThreads - 1) / kThreads;
    const unsigned blocks = static_cast<unsigned>(wanted < 8192 ? wanted : 8192);
    scaled_tanh_kernel<<<blocks, kThreads, 0, stream>>>(x, slope, maximum, y, count);
    return hipGetLastError();
}
