// expect: wrong_result in heldout-23. Early exit: exponentials more than 16 below the maximum are left out.
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int length) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        largest = fmaxf(largest, static_cast<float>(x[start + i]));
    }
    largest = block_max(largest);
    float total = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float below = static_cast<float>(x[start + i]) - largest;
        if (below > -16.0f) total += expf(below);  // less than half a unit in the last place
    }
    total = block_sum(total);
    for (int i = threadIdx.x; i < length; i += kThreads) {
        y[start + i] = static_cast<E>(expf(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_kernel<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
