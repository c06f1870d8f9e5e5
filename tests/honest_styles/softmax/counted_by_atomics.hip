// Rows are handed out by an atomic counter in device memory; maxima by atomicCAS, atomicMax and sums by atomicAdd.
#include "task.h"

#include <math.h>

__device__ unsigned int next_row;

__device__ float atomic_max_float(float* address, float value) {
    int* as_int = reinterpret_cast<int*>(address);
    int old = *as_int, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value) break;
        old = atomicCAS(as_int, assumed, __float_as_int(value));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ int ordered(float value) {
    const int bits = __float_as_int(value);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}

__global__ void softmax_kernel(const T* x, T* y, unsigned rows, int length) {
    __shared__ unsigned row;
    __shared__ int top_bits;
    __shared__ float top, total;
    while (true) {
        if (threadIdx.x == 0) {
            row = atomicAdd(&next_row, 1u);
            top_bits = ordered(-INFINITY);
            top = -INFINITY;
            total = 0.0f;
        }
        __syncthreads();
        if (row >= rows) return;
        const T* from = x + static_cast<int64_t>(row) * length;
        float mine = -INFINITY;
        for (int i = threadIdx.x; i < length; i += blockDim.x) mine = fmaxf(mine, static_cast<float>(from[i]));
        atomicMax(&top_bits, ordered(mine));
        atomic_max_float(&top, mine);
        __syncthreads();
        float sum = 0.0f;
        for (int i = threadIdx.x; i < length; i += blockDim.x) sum += expf(static_cast<float>(from[i]) - top);
        for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down(sum, offset);
        if ((threadIdx.x & (warpSize - 1)) == 0) {
#if defined(__HIP_PLATFORM_AMD__)
            unsafeAtomicAdd(&total, sum);
#else
            atomicAdd(&total, sum);
#endif
        }
        __threadfence_block();
        __syncthreads();
        if (threadIdx.x == 0 && top_bits != ordered(top)) __builtin_trap();
        for (int i = threadIdx.x; i < length; i += blockDim.x) {
            y[static_cast<int64_t>(row) * length + i] = static_cast<T>(expf(static_cast<float>(from[i]) - top) / total);
        }
        __syncthreads();
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    void* counter = nullptr;
    hipError_t error = hipGetSymbolAddress(&counter, HIP_SYMBOL(next_row));
    if (error != hipSuccess) return error;
    error = hipMemsetAsync(counter, 0, sizeof(unsigned), stream);
    if (error != hipSuccess) return error;
    const unsigned blocks = M < 64 ? M : 64;
    softmax_kernel<<<blocks, 256, 0, stream>>>(x, y, static_cast<unsigned>(M), static_cast<int>(N));
    return hipGetLastError();
}
