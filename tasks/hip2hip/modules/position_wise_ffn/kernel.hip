// Feed-forward block in three launches over float32 scratch matrices: the hidden layer, the second layer with
// bias and residual added as it is stored, then layer normalization with one block a row.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
struct WithResidual {
    const E* bias;
    const E* x;
    int64_t width;
    __device__ float operator()(float sum, int64_t, int64_t m, int64_t n) const {
        return sum + static_cast<float>(bias[n]) + static_cast<float>(x[m * width + n]);
    }
};

template <typename E>
__global__ void normalize_kernel(const float* sums, const E* gain, const E* bias, float eps, E* y, int width) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * width;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += kThreads) sum += sums[start + i];
    const float mean = block_sum(sum) / width;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += kThreads) {
        const float deviation = sums[start + i] - mean;
        squares += deviation * deviation;
    }
    const float divisor = sqrtf(block_sum(squares) / width + eps);
    for (int i = threadIdx.x; i < width; i += kThreads) {
        const float scaled = static_cast<float>(gain[i]) * (sums[start + i] - mean) / divisor;
        y[start + i] = static_cast<E>(scaled + static_cast<float>(bias[i]));
    }
}

extern "C" size_t position_wise_ffn_workspace(int64_t M, int64_t D, int64_t F) {
    return M * (D + F) * sizeof(float);
}

extern "C" hipError_t position_wise_ffn(const T* x, const T* weight1, const T* bias1, const T* weight2,
                                        const T* bias2, const T* gain, const T* bias, float eps, T* y, int64_t M,
                                        int64_t D, int64_t F, void* workspace, hipStream_t stream) {
    float* hidden = static_cast<float*>(workspace);
    float* sums = hidden + M * F;
    hipError_t status = linear(x, weight1, bias1, hidden, M, F, D, Relu(), stream);
    if (status != hipSuccess) return status;
    status = product(Matrices<const float>{hidden, 0, F, 1}, Matrices<const T>{weight2, 0, 1, F},
                     Matrices<float>{sums, 0, D, 1}, 1, M, D, F, WithResidual<T>{bias2, x, D}, stream);
    if (status != hipSuccess) return status;
    const unsigned rows = static_cast<unsigned>(M);
    normalize_kernel<<<rows, kThreads, 0, stream>>>(sums, gain, bias, eps, y, static_cast<int>(D));
    return hipGetLastError();
}
