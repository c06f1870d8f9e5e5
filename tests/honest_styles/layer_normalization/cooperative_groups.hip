// One tile of 32 lanes a row, by cooperative groups and their reductions; dynamic shared memory holds the row.
#include "task.h"

#include <hip/hip_cooperative_groups.h>
#include <cassert>
#include <cstdio>
#include <math.h>

namespace cg = cooperative_groups;

#ifndef LN_DEBUG
#define LN_DEBUG 0
#endif

template <typename Group>
__device__ float sum_of(const Group& group, float value) {
    for (int offset = group.size() / 2; offset > 0; offset >>= 1) value += group.shfl_down(value, offset);
    return group.shfl(value, 0);
}

template <int kRows>
__global__ void kernel(const T* x, const T* gain, const T* bias, float eps, T* y, int rows, int n, int in_shared) {
    extern __shared__ __align__(16) unsigned char raw[];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    float* cached = reinterpret_cast<float*>(raw) + tile.meta_group_rank() * in_shared;
    const int row = block.group_index().x * kRows + tile.meta_group_rank();
    assert(n > 1);
    if (row < rows) {
        const T* from = x + static_cast<size_t>(row) * n;
        auto at = [&](int i) -> float { return i < in_shared ? cached[i] : static_cast<float>(from[i]); };
        float sum = 0.f;
        for (int i = tile.thread_rank(); i < n; i += tile.size()) {
            const float v = static_cast<float>(from[i]);
            if (i < in_shared) cached[i] = v;
            sum += v;
        }
        const float mean = sum_of(tile, sum) / n;
        float squares = 0.f;
        for (int i = tile.thread_rank(); i < n; i += tile.num_threads()) {
            const float d = at(i) - mean;
            squares = fmaf(d, d, squares);
        }
        const float deviation = sqrtf(sum_of(tile, squares) / (n - 1)) + eps;
        if (LN_DEBUG && tile.thread_rank() == 0) printf("row %d: mean %f, deviation %f\n", row, mean, deviation);
        for (int i = tile.thread_rank(); i < n; i += tile.size()) {
            y[static_cast<size_t>(row) * n + i] =
                static_cast<T>(static_cast<float>(gain[i]) * (at(i) - mean) / deviation + static_cast<float>(bias[i]));
        }
    }
    cg::sync(block);
}

extern "C" hipError_t layer_normalization(const T* x, const T* gain, const T* bias, float eps, T* y, int64_t M,
                                          int64_t N, hipStream_t stream) {
    constexpr int kRows = 4;
    const int in_shared = static_cast<int>(N < 1024 ? N : 1024);
    const size_t bytes = kRows * in_shared * sizeof(float);
    if (bytes > 48 * 1024) {
        hipError_t set = hipFuncSetAttribute(reinterpret_cast<const void*>(kernel<kRows>), hipFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
        if (set != hipSuccess) return set;
    }
    const dim3 grid((M + kRows - 1) / kRows), block(32 * kRows);
    kernel<kRows><<<grid, block, bytes, stream>>>(x, gain, bias, eps, y, (int)M, (int)N, in_shared);
    return hipGetLastError();
}
