// Reductions over lanes by the builtins of AMD's that have no other name, with shuffles elsewhere; union and volatile shared memory.
#include "task.h"

#include <hip/hip_cooperative_groups.h>
#include <math.h>

namespace cg = cooperative_groups;
using namespace cooperative_groups;

__device__ __forceinline__ float other_lane(float v, int lane) {
#if defined(__HIP_PLATFORM_AMD__)
    return __int_as_float(__builtin_amdgcn_ds_bpermute(lane << 2, __float_as_int(v)));
#else
    return __shfl(v, lane);
#endif
}

__device__ float reciprocal(float v) {
#if defined(__HIP_PLATFORM_AMD__)
    const float r = __builtin_amdgcn_rcpf(v);
    return r * (2.0f - v * r);
#else
    return __frcp_rn(v);
#endif
}

template <typename F>
__device__ float over_wave(float v, F combine) {
    const int lane = __lane_id();
    for (int distance = 1; distance < warpSize; distance *= 2) v = combine(v, other_lane(v, lane ^ distance));
    return v;
}

__global__ void __launch_bounds__(256, 4) softmax_kernel(const T* x, T* y, int length) {
    __shared__ union {
        float maxima[256 / 32];
        float sums[256 / 32];
    } shared;
    volatile __shared__ float result;
    thread_block block = this_thread_block();
    const int wave = threadIdx.x / warpSize, waves = blockDim.x / warpSize;
    const T* row = x + static_cast<size_t>(blockIdx.x) * length;
    float top = -INFINITY;
    for (int i = block.thread_rank(); i < length; i += block.size()) top = max(top, static_cast<float>(row[i]));
    top = over_wave(top, [](float a, float b) { return fmaxf(a, b); });
    if (__lane_id() == 0) shared.maxima[wave] = top;
    block.sync();
    if (threadIdx.x == 0) {
        float best = shared.maxima[0];
        for (int w = 1; w < waves; ++w) best = fmaxf(best, shared.maxima[w]);
        result = best;
    }
    block.sync();
    top = result;
    float sum = 0.f;
    for (int i = threadIdx.x; i < length; i += blockDim.x) sum += __expf(static_cast<float>(row[i]) - top);
    sum = over_wave(sum, [](float a, float b) { return a + b; });
    if (__lane_id() == 0) shared.sums[wave] = sum;
    cg::sync(block);
    sum = 0.f;
    for (int w = 0; w < waves; ++w) sum += shared.sums[w];
    const float scale = reciprocal(sum);
    for (int i = threadIdx.x; i < length; i += blockDim.x) {
        y[static_cast<size_t>(blockIdx.x) * length + i] = static_cast<T>(__expf(static_cast<float>(row[i]) - top) * scale);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    hipFuncSetCacheConfig(reinterpret_cast<const void*>(softmax_kernel), hipFuncCachePreferL1);
    softmax_kernel<<<M, N < 256 ? 64 : 256, 0, stream>>>(x, y, N);
    return hipPeekAtLastError();
}
