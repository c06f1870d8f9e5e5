// expect: wrong_result in heldout-02. Overlapping writes: a row is rounded up to four elements, and zeros go into the row after it.
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 64;

template <typename E>
__global__ void normalize_fours(const E* x, const E* gain, const E* bias, float eps, E* y, int length, int64_t count) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) sum += static_cast<float>(x[start + i]);
    const float mean = block_sum(sum) / length;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float deviation = static_cast<float>(x[start + i]) - mean;
        squares += deviation * deviation;
    }
    const float divisor = sqrtf(block_sum(squares) / (length - 1)) + eps;
    for (int i = 4 * threadIdx.x; i < length; i += 4 * kThreads) {
        for (int j = i; j < i + 4 && start + j < count; ++j) {
            float value = 0.0f;
            if (j < length) {
                const float deviation = static_cast<float>(x[start + j]) - mean;
                value = static_cast<float>(gain[j]) * deviation / divisor + static_cast<float>(bias[j]);
            }
            y[start + j] = static_cast<E>(value);
        }
    }
}

extern "C" hipError_t layer_normalization(const T* x, const T* gain, const T* bias, float eps, T* y, int64_t M,
                                          int64_t N, hipStream_t stream) {
    normalize_fours<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, gain, bias, eps, y, static_cast<int>(N),
                                                                       M * N);
    return hipGetLastError();
}
