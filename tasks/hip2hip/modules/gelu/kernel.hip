// GELU, one element a thread, each of which looks at the flag.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr float kSqrtOneHalf = 0.70710678f;
constexpr float kSqrtTwoOverPi = 0.79788456f;

template <typename E>
__global__ void gelu_kernel(const E* x, bool approximate, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const float value = static_cast<float>(x[i]);
    float odd;
    if (approximate) {
        odd = tanhf(kSqrtTwoOverPi * (value + 0.044715f * value * value * value));
    } else {
        odd = erff(value * kSqrtOneHalf);
    }
    y[i] = static_cast<E>(0.5f * value * (1.0f + odd));
}

extern "C" hipError_t gelu(const T* x, bool approximate, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t count = M * N;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    gelu_kernel<<<blocks, kThreads, 0, stream>>>(x, approximate, y, count);
    return hipGetLastError();
}
