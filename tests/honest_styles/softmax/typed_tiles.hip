// Cooperative groups whose type is written out, and a builtin of AMD's where there is one.
#include "task.h"

#include <hip/hip_cooperative_groups.h>
#include <math.h>

namespace cg = cooperative_groups;

__device__ float exponential(float value) {
#if defined(__HIP_PLATFORM_AMD__)
    return __builtin_amdgcn_exp2f(value * 1.44269504f);
#else
    return exp2f(value * 1.44269504f);
#endif
}

template <typename E>
__global__ void softmax_kernel(const E* x, E* y, int rows, int length) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
    if (row >= rows) return;
    const int64_t start = static_cast<int64_t>(row) * length;
    float largest = -INFINITY, total = 0.0f;
    for (int i = tile.thread_rank(); i < length; i += 32) largest = fmaxf(largest, static_cast<float>(x[start + i]));
    for (int distance = 16; distance > 0; distance /= 2) largest = fmaxf(largest, tile.shfl_xor(largest, distance));
    for (int i = tile.thread_rank(); i < length; i += 32) {
        total += exponential(static_cast<float>(x[start + i]) - largest);
    }
    for (int distance = 16; distance > 0; distance /= 2) total += tile.shfl_xor(total, distance);
    for (int i = tile.thread_rank(); i < length; i += 32) {
        y[start + i] = static_cast<E>(exponential(static_cast<float>(x[start + i]) - largest) / total);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    constexpr int kRows = 4;
    const unsigned blocks = static_cast<unsigned>((M + kRows - 1) / kRows);
    softmax_kernel<<<blocks, 32 * kRows, 0, stream>>>(x, y, static_cast<int>(M), static_cast<int>(N));
    return hipGetLastError();
}
