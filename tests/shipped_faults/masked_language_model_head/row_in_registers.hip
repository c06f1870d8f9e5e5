// expect: wrong_result in heldout-18. Size limit: registers of a block hold 32768 logits of a row.
// Masked-language-model head: a plain matrix product leaves the logits in float32 scratch memory, then one block a
// row reads them once into registers, enough for the 30522 tokens of BERT, and makes log-probabilities of them.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kOwn = 128;  // logits of a thread

template <typename E>
__global__ void log_softmax_kernel(const float* logits, E* y, int classes) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * classes;
    float largest = -INFINITY;
    float own[kOwn];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
        const int i = k * kThreads + threadIdx.x;
        own[k] = i < classes ? logits[start + i] : -INFINITY;
        largest = fmaxf(largest, own[k]);
    }
    largest = block_max(largest);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) sum += expf(own[k] - largest);
    const float log_sum = logf(block_sum(sum));
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
        const int i = k * kThreads + threadIdx.x;
        if (i < classes) y[start + i] = static_cast<E>(own[k] - largest - log_sum);
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
