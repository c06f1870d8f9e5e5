// Softmax, one block a row, three passes over it: the maximum, the sum of the exponentials, the quotients.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kMostWaves = kThreads / 32;

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Every thread of the block gets the result. Waves may have 32 or 64 lanes; all of them are full.
template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float of_wave[kMostWaves];
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor(value, distance));
    }
    const int waves = kThreads / warpSize;
    if (threadIdx.x % warpSize == 0) of_wave[threadIdx.x / warpSize] = value;
    __syncthreads();
    for (int stride = waves / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            of_wave[threadIdx.x] = combine(of_wave[threadIdx.x], of_wave[threadIdx.x + stride]);
        }
        __syncthreads();
    }
    const float result = of_wave[0];
    __syncthreads();  // before the next call writes there again
    return result;
}

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int length) {
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        largest = fmaxf(largest, static_cast<float>(x[start + i]));
    }
    largest = over_block(largest, Larger());
    float total = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) {
        total += expf(static_cast<float>(x[start + i]) - largest);
    }
    total = over_block(total, Sum());
    for (int i = threadIdx.x; i < length; i += kThreads) {
        y[start + i] = static_cast<E>(expf(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_kernel<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
