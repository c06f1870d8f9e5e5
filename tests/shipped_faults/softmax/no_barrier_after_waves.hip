// expect: wrong_result in seen-01. Missing barrier: the sums of the waves are read before all waves have stored theirs.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

__device__ float over_waves(float value, float* shared, bool sum) {
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        const float other = __shfl_xor(value, distance);
        value = sum ? value + other : fmaxf(value, other);
    }
    if (threadIdx.x % warpSize == 0) shared[threadIdx.x / warpSize] = value;
    value = shared[0];
    for (int wave = 1; wave < kThreads / warpSize; ++wave) value = sum ? value + shared[wave] : fmaxf(value, shared[wave]);
    return value;
}

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int length) {
    __shared__ float largest_of[32], total_of[32];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    float largest = -INFINITY, total = 0.0f;
    for (int i = threadIdx.x; i < length; i += kThreads) largest = fmaxf(largest, static_cast<float>(x[start + i]));
    largest = over_waves(largest, largest_of, false);
    for (int i = threadIdx.x; i < length; i += kThreads) total += expf(static_cast<float>(x[start + i]) - largest);
    total = over_waves(total, total_of, true);
    for (int i = threadIdx.x; i < length; i += kThreads) {
        y[start + i] = static_cast<E>(expf(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_kernel<<<static_cast<unsigned>(M), kThreads, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
