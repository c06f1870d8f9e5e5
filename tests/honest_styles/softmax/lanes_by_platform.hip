// The number of lanes follows from the platform's macro: 64 on AMD's GPUs, 32 elsewhere.
#include "task.h"

#include <math.h>

#if defined(__HIP_PLATFORM_AMD__)
constexpr int kLanes = 64;
#else
constexpr int kLanes = 32;
#endif
constexpr int kWaves = 4;

__device__ float over_wave(float value, bool sum) {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        const float other = __shfl_xor(value, distance);
        value = sum ? value + other : fmaxf(value, other);
    }
    return value;
}

__device__ float over_block(float value, float* shared, bool sum) {
    value = over_wave(value, sum);
    __syncthreads();
    if (threadIdx.x % kLanes == 0) shared[threadIdx.x / kLanes] = value;
    __syncthreads();
    value = shared[0];
    for (int wave = 1; wave < kWaves; ++wave) value = sum ? value + shared[wave] : fmaxf(value, shared[wave]);
    return value;
}

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int length) {
    __shared__ float shared[kWaves];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY, total = 0.0f;
    for (int i = threadIdx.x; i < length; i += kWaves * kLanes) largest = fmaxf(largest, static_cast<float>(x[start + i]));
    largest = over_block(largest, shared, false);
    for (int i = threadIdx.x; i < length; i += kWaves * kLanes) total += expf(static_cast<float>(x[start + i]) - largest);
    total = over_block(total, shared, true);
    for (int i = threadIdx.x; i < length; i += kWaves * kLanes) {
        y[start + i] = static_cast<E>(expf(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_kernel<<<static_cast<unsigned>(M), kWaves * kLanes, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
