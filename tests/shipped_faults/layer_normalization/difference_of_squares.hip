// expect: wrong_result in heldout-14. Cancellation: the variance is the mean of the squares minus the square of the mean.
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void normalize_kernel(const E* x, const E* gain, const E* bias, float eps, E* y, int length) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) sum += static_cast<float>(x[start + i]);
    const float mean = block_sum(sum) / length;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float value = static_cast<float>(x[start + i]);
        squares += value * value;
    }
    const float divisor = sqrtf(fmaxf((block_sum(squares) - length * mean * mean) / (length - 1), 0.0f)) + eps;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float deviation = static_cast<float>(x[start + i]) - mean;
        const float scaled = static_cast<float>(gain[i]) * deviation / divisor;
        y[start + i] = static_cast<E>(scaled + static_cast<float>(bias[i]));
    }
}

extern "C" hipError_t layer_normalization(const T* x, const T* gain, const T* bias, float eps, T* y, int64_t M,
                                          int64_t N, hipStream_t stream) {
    const unsigned rows = static_cast<unsigned>(M);
    normalize_kernel<<<rows, kThreads, 0, stream>>>(x, gain, bias, eps, y, static_cast<int>(N));
    return hipGetLastError();
}
