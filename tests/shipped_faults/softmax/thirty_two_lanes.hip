// expect: wave_size_dependent in seen-01. Lanes mixed: shuffles over warpSize lanes, and shared memory counted in waves of 32.
#include "task.h"

#include <math.h>

constexpr int kThreads = 128;

__device__ float sum_of_block(float value, float* shared) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor(value, distance);
    __syncthreads();
    if (threadIdx.x % warpSize == 0) shared[threadIdx.x / warpSize] = value;
    __syncthreads();
    value = 0.0f;
    for (int wave = 0; wave < kThreads / warpSize; ++wave) value += shared[wave];
    return value;
}

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int length) {
    __shared__ float shared[kThreads];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < length; ++i) largest = fmaxf(largest, static_cast<float>(x[start + i]));
    for (int i = threadIdx.x; i < length; i += kThreads) total += expf(static_cast<float>(x[start + i]) - largest);
    total = sum_of_block(total, shared);
    for (int i = threadIdx.x; i < length; i += kThreads) {
        y[start + i] = static_cast<E>(expf(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_kernel<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
