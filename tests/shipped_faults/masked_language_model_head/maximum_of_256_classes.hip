// expect: wrong_result in heldout-23. Incomplete reduction: the maximum is that of the first 256 classes.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void log_softmax_kernel(const float* logits, E* y, int classes) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * classes;
    // Any value near the maximum serves to shift the exponents: that of one class a thread.
    const float largest = block_max(static_cast<int>(threadIdx.x) < classes ? logits[start + threadIdx.x] : -INFINITY);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < classes; i += kThreads) sum += expf(logits[start + i] - largest);
    const float log_sum = logf(block_sum(sum));
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        y[start + i] = static_cast<E>(logits[start + i] - largest - log_sum);
    }
}

extern "C" size_t masked_language_model_head_workspace(int64_t M, int64_t V, int64_t) {
    return M * V * sizeof(float);
}

extern "C" hipError_t masked_language_model_head(const T* x, const T* weight, const T* bias, T* y, int64_t M,
                                                 int64_t V, int64_t H, void* workspace, hipStream_t stream) {
    float* logits = static_cast<float*>(workspace);
    const hipError_t failed = linear(x, weight, bias, logits, M, V, H, Identity(), stream);
    if (failed != hipSuccess) return failed;
    log_softmax_kernel<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(logits, y, static_cast<int>(V));
    return hipGetLastError();
}
