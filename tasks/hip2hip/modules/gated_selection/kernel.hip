// Gated residual in two matrix products: that of a leaves its part of the gate in float32 scratch memory, that of b
// adds its own and the bias, and chooses between a and b with the gate it then has.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <math.h>

template <typename E>
struct Select {
    const float* from_a;
    const E *a, *b, *bias;
    int64_t features;

    __device__ float operator()(float sum, int64_t, int64_t m, int64_t n) const {
        const int64_t at = m * features + n;
        const float gate = 1.0f / (1.0f + expf(-(from_a[at] + sum + static_cast<float>(bias[n]))));
        return gate * static_cast<float>(a[at]) + (1.0f - gate) * static_cast<float>(b[at]);
    }
};

extern "C" size_t gated_selection_workspace(int64_t M, int64_t D) { return M * D * sizeof(float); }

extern "C" hipError_t gated_selection(const T* a, const T* b, const T* weight, const T* bias, T* y, int64_t M,
                                      int64_t D, void* workspace, hipStream_t stream) {
    float* from_a = static_cast<float*>(workspace);
    const Matrices<const T> of_a{weight, 0, 1, 2 * D}, of_b{weight + D, 0, 1, 2 * D};  // transposed
    const hipError_t failed = product(Matrices<const T>{a, 0, D, 1}, of_a, Matrices<float>{from_a, 0, D, 1}, 1, M, D,
                                      D, Plain(), stream);
    if (failed != hipSuccess) return failed;
    return product(Matrices<const T>{b, 0, D, 1}, of_b, Matrices<T>{y, 0, D, 1}, 1, M, D, D,
                   Select<T>{from_a, a, b, bias, D}, stream);
}
