// expect: wrong_result in heldout-06. Sign of a scalar: the factor is taken in before the kink, which a negative one turns around.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void fused_leaky_relu_kernel(const E* x, const E* bias, float negative_slope, float scale, E* y,
                                        int64_t channels, int64_t positions, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const int64_t channel = i / positions % channels;
    const float value = scale * (static_cast<float>(x[i]) + static_cast<float>(bias[channel]));
    y[i] = static_cast<E>(value > 0.0f ? value : negative_slope * value);
}

extern "C" hipError_t fused_leaky_relu(const T* x, const T* bias, float negative_slope, float scale, T* y, int64_t B,
                                       int64_t C, int64_t S, hipStream_t stream) {
    const int64_t count = B * C * S;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    fused_leaky_relu_kernel<<<blocks, kThreads, 0, stream>>>(x, bias, negative_slope, scale, y, C, S, count);
    return hipGetLastError();
}
