// expect: wrong_result. Cancellation: half of one plus tanh is 0 where the sigmoid is small.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void scaled_sigmoid_kernel(const E* x, float slope, float maximum, E* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const float exponent = -slope * static_cast<float>(x[i]);
    y[i] = static_cast<E>(maximum * (0.5f - 0.5f * tanhf(0.5f * exponent)));
}

extern "C" hipError_t scaled_sigmoid(const T* x, float slope, float maximum, T* y, int64_t M, int64_t N,
                                     hipStream_t stream) {
    const int64_t count = M * N;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    scaled_sigmoid_kernel<<<blocks, kThreads, 0, stream>>>(x, slope, maximum, y, count);
    return hipGetLastError();
}
