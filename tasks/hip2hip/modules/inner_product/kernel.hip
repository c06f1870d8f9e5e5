// Scaled inner product over channels in two launches: the image's features times their scales into float32 scratch
// memory, then a batched matrix product with the sound's, which adds the bias.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

constexpr int kThreads = 64;

// A block a channel of a sample.
template <typename E>
__global__ void scale_kernel(const E* image, const E* scale, float* scaled, int64_t channels, int64_t positions) {
    const float factor = static_cast<float>(scale[blockIdx.x % channels]);
    const int64_t start = static_cast<int64_t>(blockIdx.x) * positions;
    for (int64_t p = threadIdx.x; p < positions; p += kThreads) {
        scaled[start + p] = static_cast<float>(image[start + p]) * factor;
    }
}

template <typename E>
struct PlusBias {
    const E* bias;
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const {
        return sum + static_cast<float>(*bias);
    }
};

extern "C" size_t inner_product_workspace(int64_t B, int64_t C, int64_t P, int64_t) {
    return B * C * P * sizeof(float);
}

extern "C" hipError_t inner_product(const T* image, const T* scale, const T* sound, const T* bias, T* y, int64_t B,
                                    int64_t C, int64_t P, int64_t S, void* workspace, hipStream_t stream) {
    float* scaled = static_cast<float*>(workspace);
    scale_kernel<<<static_cast<unsigned>(B * C), kThreads, 0, stream>>>(image, scale, scaled, C, P);
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    return product(Matrices<const float>{scaled, C * P, 1, P}, Matrices<const T>{sound, C * S, S, 1},
                   Matrices<T>{y, P * S, S, 1}, B, P, S, C, PlusBias<T>{bias}, stream);
}
