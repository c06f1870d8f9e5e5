// expect: wrong_result in heldout-19. Size limit: taps of one channel are staged as one wave of 32: taps beyond are taken for 0.
// Convolution, GELU and linear layer in four launches. With zeros around each sequence, the K rows that an output
// time needs lie behind one another, so the convolution is a product with a matrix of overlapping rows: launch one
// brings the taps of the weights in front of their channels, two pads x, three and four are the products.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;

struct Gelu {
    __device__ float operator()(float value) const { return 0.5f * value * (1.0f + erff(value * 0.70710678f)); }
};

// padded (B, L + K - 1, D): x with `before` rows of zeros in front of each sequence, the others behind it.
template <typename E>
__global__ void pad_kernel(const E* x, E* padded, int64_t length, int64_t width, int64_t padded_length,
                           int64_t before, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const int64_t row = i / width, time = row % padded_length - before;
    const bool inside = time >= 0 && time < length;
    padded[i] = inside ? x[(row / padded_length * length + time) * width + i % width] : static_cast<E>(0.0f);
}

// taps_first (F, K, D) from weight (F, D, K).
template <typename E>
__global__ void reorder_kernel(const E* weight, E* taps_first, int64_t width, int64_t taps, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    const int64_t row = i / width, channel = row / taps, tap = row % taps;
    taps_first[i] = tap < 32 ? weight[(channel * width + i % width) * taps + tap] : static_cast<E>(0.0f);
}

static unsigned blocks(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

extern "C" size_t transformer_ffn_workspace(int64_t B, int64_t L, int64_t D, int64_t F, int64_t K) {
    return B * L * F * sizeof(float) + (B * (L + K - 1) * D + F * K * D) * sizeof(T);
}

extern "C" hipError_t transformer_ffn(const T* x, const T* conv_weight, const T* conv_bias, const T* weight,
                                      const T* bias, bool causal, T* y, int64_t B, int64_t L, int64_t D, int64_t F,
                                      int64_t K, void* workspace, hipStream_t stream) {
    const int64_t padded_length = L + K - 1, before = causal ? K - 1 : (K - 1) / 2;
    const int64_t elements = B * padded_length * D, weights = F * K * D;
    float* hidden = static_cast<float*>(workspace);
    T* padded = reinterpret_cast<T*>(hidden + B * L * F);
    T* taps_first = padded + elements;
    reorder_kernel<<<blocks(weights), kThreads, 0, stream>>>(conv_weight, taps_first, D, K, weights);
    pad_kernel<<<blocks(elements), kThreads, 0, stream>>>(x, padded, L, D, padded_length, before, elements);
    hipError_t status = hipGetLastError();
    if (status != hipSuccess) return status;
    const Matrices<const T> windows{padded, padded_length * D, D, 1}, columns{taps_first, 0, 1, K * D};
    const WithBias<T, Gelu> activate{conv_bias, Gelu()};
    status = product(windows, columns, Matrices<float>{hidden, L * F, F, 1}, B, L, F, K * D, activate, stream);
    if (status != hipSuccess) return status;
    return linear(hidden, weight, bias, y, B * L, D, F, Identity(), stream);
}
