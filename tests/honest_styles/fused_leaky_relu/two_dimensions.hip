// A grid of two dimensions, one row of it a channel; streaming loads and stores, and a struct of parameters.
#include "task.h"

#include <hip/hip_runtime.h>

typedef struct {
    float slope, scale;
    int channels;
    long long positions;
} Params;

template <typename E> static __device__ __forceinline__ float to_float(E v) { return (float)v; }
template <typename E> static __device__ __forceinline__ E from_float(float v) { return (E)v; }

template <typename E>
__global__ void activate(const E *__restrict x, const E *__restrict bias, E *__restrict y, const Params p)
{
    const unsigned channel = blockIdx.y % p.channels;
    __shared__ float offset;
    if (threadIdx.x == 0) offset = to_float(bias[channel]);
    __syncthreads();
    const long long base = (long long)blockIdx.y * p.positions;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < p.positions; i += (long long)gridDim.x * blockDim.x) {
        float v = to_float(x[base + i]) + offset;
        v = v >= 0.f ? v : v * p.slope;
        y[base + i] = from_float<E>(v * p.scale);
    }
}

__global__ void activate_flat(const T *x, const T *bias, T *y, Params p, long long n)
{
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
        const float v = to_float(x[i]) + to_float(bias[(i / p.positions) % p.channels]);
        y[i] = from_float<T>(p.scale * fmaxf(v, 0.f) + p.scale * p.slope * fminf(v, 0.f));
    }
}

extern "C" hipError_t fused_leaky_relu(const T* x, const T* bias, float negative_slope, float scale, T* y, int64_t B,
                                       int64_t C, int64_t S, hipStream_t stream)
{
    Params p = {negative_slope, scale, (int)C, (long long)S};
    if (B * C <= 65535 && S >= 64) {
        void *args[] = {(void *)&x, (void *)&bias, (void *)&y, (void *)&p};
        return hipLaunchKernel((const void *)activate<T>, dim3((unsigned)((S + 255) / 256), (unsigned)(B * C)), dim3(256), args, 0, stream);
    }
    const long long n = B * C * S;
    activate_flat<<<(unsigned)((n + 255) / 256 < 4096 ? (n + 255) / 256 : 4096), 256, 0, stream>>>(x, bias, y, p, n);
    return hipGetLastError();
}
