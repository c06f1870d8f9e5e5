// What many baseline kernels need, once: reductions over the threads of a one-dimensional block.
// A candidate may include it as "block.h", or write its own.
#ifndef ARENA_BLOCK_H
#define ARENA_BLOCK_H

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// Every thread gets the combination of all threads' values, always in the same order. All threads must call it; their
// number is a multiple of 64, so that waves of 32 and of 64 lanes are full, and at most 1024.
template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float of_wave[32];
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor(value, distance));
    }
    if (threadIdx.x % warpSize == 0) of_wave[threadIdx.x / warpSize] = value;
    __syncthreads();
    value = of_wave[0];
    for (int wave = 1; wave < static_cast<int>(blockDim.x / warpSize); ++wave) value = combine(value, of_wave[wave]);
    __syncthreads();  // before the next call writes there again
    return value;
}

__device__ inline float block_sum(float value) { return over_block(value, Sum()); }
__device__ inline float block_max(float value) { return over_block(value, Larger()); }

#endif
