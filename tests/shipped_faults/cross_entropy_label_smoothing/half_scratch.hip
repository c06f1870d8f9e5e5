// expect: wrong_result in heldout-20. Row losses wait in scratch memory in the dtype of the output, so that one row of loss above 65504 makes a float16 mean infinite though the mean itself is small enough.
// Label-smoothed cross-entropy: one block a row leaves the row's loss in scratch memory, a last block
// averages them. Every sum has a fixed order, so the result is the same each time.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void row_loss_kernel(const E* logits, const int64_t* target, float smoothing, E* row_loss,
                                int classes, int64_t pitch) {
    const E* row = logits + blockIdx.x * pitch;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        largest = fmaxf(largest, static_cast<float>(row[i]));
    }
    largest = block_max(largest);
    float exponentials = 0.0f, shifted = 0.0f;
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        const float logit = static_cast<float>(row[i]) - largest;
        exponentials += expf(logit);
        shifted += logit;
    }
    const float log_sum = logf(block_sum(exponentials));
    const float mean = block_sum(shifted) / classes;
    if (threadIdx.x == 0) {
        const float hard = log_sum - (static_cast<float>(row[target[blockIdx.x]]) - largest);
        row_loss[blockIdx.x] = static_cast<E>((1.0f - smoothing) * hard + smoothing * (log_sum - mean));
    }
}

template <typename E>
__global__ void mean_kernel(const E* row_loss, E* loss, int rows) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += kThreads) sum += static_cast<float>(row_loss[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = static_cast<E>(sum / rows);
}

extern "C" size_t cross_entropy_label_smoothing_workspace(int64_t M, int64_t, int64_t) { return M * sizeof(T); }

extern "C" hipError_t cross_entropy_label_smoothing(const T* logits, const int64_t* target, float smoothing,
                                                    T* loss, int64_t M, int64_t C, int64_t row_gap, void* workspace,
                                                    hipStream_t stream) {
    T* row_loss = static_cast<T*>(workspace);
    const unsigned rows = static_cast<unsigned>(M);
    row_loss_kernel<<<rows, kThreads, 0, stream>>>(logits, target, smoothing, row_loss, static_cast<int>(C),
                                                   C + row_gap);
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    mean_kernel<<<1, kThreads, 0, stream>>>(row_loss, loss, static_cast<int>(M));
    return hipGetLastError();
}
