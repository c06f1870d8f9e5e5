// A softmax with 32 threads to a row that takes a wave to be those 32: right there, wrong where a wave holds two rows.
#include "task.h"

#include <math.h>

__global__ void wave_kernel(const T* x, T* y, int64_t M, int64_t N) {
    const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x / 32) + threadIdx.x / 32;
    const int64_t start = (row < M ? row : M - 1) * N;
    float top = -INFINITY, total = 0.0f;
    for (int64_t i = threadIdx.x % 32; i < N; i += 32) top = fmaxf(top, static_cast<float>(x[start + i]));
    for (int distance = 1; distance < 32; distance *= 2) top = fmaxf(top, __shfl_xor(top, distance));
    for (int64_t i = threadIdx.x % 32; i < N; i += 32) total += expf(static_cast<float>(x[start + i]) - top);
    for (int distance = 16; distance > 0; distance /= 2) total += __shfl_down(total, distance);
    total = __shfl(total, 0);  // lane 0 of the wave, whose row may be another's
    if (row >= M) return;
    for (int64_t i = threadIdx.x % 32; i < N; i += 32) {
        y[start + i] = static_cast<T>(expf(static_cast<float>(x[start + i]) - top) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    wave_kernel<<<dim3((M + 3) / 4), dim3(128), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
