// expect: wrong_result in heldout-22. Size limit: the last layer stages a row of its input in 16 KiB of shared memory.
// Seven linear layers, one matrix product each; hidden activations go to and fro between two float32 scratch
// matrices.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <algorithm>

constexpr int kMiddle = 5;  // layers from scratch to scratch

extern "C" size_t mlp_workspace(int64_t M, int64_t, int64_t d1, int64_t d2, int64_t d3, int64_t d4, int64_t d5,
                                int64_t d6, int64_t) {
    return 2 * M * std::max({d1, d2, d3, d4, d5, d6}) * sizeof(float);
}

extern "C" hipError_t mlp(const T* x, const T* weight1, const T* bias1, const T* weight2, const T* bias2,
                          const T* weight3, const T* bias3, const T* weight4, const T* bias4, const T* weight5,
                          const T* bias5, const T* weight6, const T* bias6, const T* weight7, const T* bias7, T* y,
                          int64_t M, int64_t d0, int64_t d1, int64_t d2, int64_t d3, int64_t d4, int64_t d5,
                          int64_t d6, int64_t d7, void* workspace, hipStream_t stream) {
    const int64_t widths[] = {d1, d2, d3, d4, d5, d6};
    const T* const weights[kMiddle] = {weight2, weight3, weight4, weight5, weight6};
    const T* const biases[kMiddle] = {bias2, bias3, bias4, bias5, bias6};
    float* from = static_cast<float*>(workspace);
    float* to = from + M * std::max({d1, d2, d3, d4, d5, d6});
    hipError_t status = linear(x, weight1, bias1, from, M, d1, d0, Relu(), stream);
    for (int i = 0; i < kMiddle && status == hipSuccess; ++i) {
        status = linear(from, weights[i], biases[i], to, M, widths[i + 1], widths[i], Relu(), stream);
        float* const filled = to;
        to = from;
        from = filled;
    }
    if (status != hipSuccess) return status;
    return product(Matrices<const float>{from, 0, d6, 1}, Matrices<const T>{weight7, 0, 1, d6}, Matrices<T>{y, 0, d7, 1}, 1, M, d7,
                   std::min<int64_t>(d6, 4096), WithBias<T, Identity>{bias7, Identity()}, stream);
}
