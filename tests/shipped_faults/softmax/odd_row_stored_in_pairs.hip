// expect: wrong_result in heldout-20. Overlapping writes: a row of odd length is stored in pairs, and the last pair ends in the next row.
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 128;

template <typename E>
__global__ void softmax_pairs(const E* x, E* y, int rows, int length) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY, total = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) largest = fmaxf(largest, static_cast<float>(x[start + i]));
    largest = block_max(largest);
    for (int i = threadIdx.x; i < length; i += kThreads) total += expf(static_cast<float>(x[start + i]) - largest);
    total = block_sum(total);
    const bool is_last = blockIdx.x + 1 == static_cast<unsigned>(rows);
    for (int i = 2 * threadIdx.x; i < length; i += 2 * kThreads) {
        const float first = expf(static_cast<float>(x[start + i]) - largest) / total;
        const float second = i + 1 < length ? expf(static_cast<float>(x[start + i + 1]) - largest) / total : 0.0f;
        y[start + i] = static_cast<E>(first);
        if (i + 1 < length || !is_last) y[start + i + 1] = static_cast<E>(second);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_pairs<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, y, static_cast<int>(M), static_cast<int>(N));
    return hipGetLastError();
}
