// expect: wrong_result in heldout-22. Scalar taken for granted: max(v, slope * v) is wrong for a slope above 1.
// Bias, leaky ReLU and scale in a grid-stride loop, without a branch.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void fused_leaky_relu_kernel(const E* x, const E* bias, float negative_slope, float scale, E* y,
                                        int64_t channels, int64_t positions, int64_t count) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int64_t channel = i / positions % channels;
        const float value = static_cast<float>(x[i]) + static_cast<float>(bias[channel]);
        // Both branches in one instruction: the slope only lowers positive values and raises negative ones.
        const float activated = fmaxf(value, negative_slope * value);
        y[i] = static_cast<E>(scale * activated);
    }
}

extern "C" hipError_t fused_leaky_relu(const T* x, const T* bias, float negative_slope, float scale, T* y, int64_t B,
                                       int64_t C, int64_t S, hipStream_t stream) {
    const int64_t count = B * C * S;
    const int64_t wanted = (count + kThreads - 1) / kThreads;
    const unsigned blocks = static_cast<unsigned>(wanted < 16384 ? wanted : 16384);
    fused_leaky_relu_kernel<<<blocks, kThreads, 0, stream>>>(x, bias, negative_slope, scale, y, C, S, count);
    return hipGetLastError();
}
