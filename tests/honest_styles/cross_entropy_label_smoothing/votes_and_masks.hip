// Masked shuffles of a full wave, votes, a counted barrier, and a fixed order of the last sum in a workspace.
#define ARENA_WORKSPACE
#include "task.h"

#include <math.h>

#if defined(__HIP_PLATFORM_NVIDIA__) || defined(__CUDACC__)
using mask_t = unsigned int;
#else
using mask_t = unsigned long long;
#endif
constexpr mask_t kAll = ~mask_t{0};
constexpr int kThreads = 256;

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

template <class Op>
__device__ float wave_reduce(float v, Op op) {
#pragma unroll
    for (int m = warpSize >> 1; m; m >>= 1) v = op(v, __shfl_xor_sync(kAll, v, m));
    return v;
}

template <class Op>
__device__ float block_reduce(float v, float identity, Op op) {
    __shared__ float partial[kThreads / 32];
    const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize, waves = kThreads / warpSize;
    v = wave_reduce(v, op);
    __syncthreads();
    if (lane == 0) partial[wave] = v;
    __syncthreads();
    if (wave == 0) {
        v = lane < waves ? partial[lane] : identity;
        v = wave_reduce(v, op);
        if (lane == 0) partial[0] = v;
    }
    __syncthreads();
    return partial[0];
}

__global__ void losses(const T* logits, const int64_t* target, float smoothing, float* out, int classes, int64_t pitch) {
    const T* row = logits + blockIdx.x * pitch;
    float top = -INFINITY;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) top = fmaxf(top, static_cast<float>(row[c]));
    top = block_reduce(top, -INFINITY, Max{});
    float total = 0, shifted = 0;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) {
        const float v = static_cast<float>(row[c]) - top;
        total += expf(v);
        shifted += v;
    }
    const int busy = __syncthreads_count(total > 0.0f);
    const auto votes = __ballot_sync(kAll, total > 0.0f);
    if (busy == 0 || (votes == 0 && total > 0.0f)) __builtin_trap();  // all of a wave may be 0 beside a large class
    total = block_reduce(total, 0.f, Sum{});
    shifted = block_reduce(shifted, 0.f, Sum{});
    if (threadIdx.x == 0) {
        const float lse = logf(total);
        const float hard = lse - (static_cast<float>(row[target[blockIdx.x]]) - top);
        out[blockIdx.x] = (1.f - smoothing) * hard + smoothing * (lse - shifted / classes);
    }
}

__global__ void mean(const float* in, T* loss, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
    sum = block_reduce(sum, 0.f, Sum());
    if (!threadIdx.x) *loss = static_cast<T>(sum / n);
}

extern "C" size_t cross_entropy_label_smoothing_workspace(int64_t M, int64_t, int64_t) { return M * sizeof(float); }

extern "C" hipError_t cross_entropy_label_smoothing(const T* logits, const int64_t* target, float smoothing,
                                                    T* loss, int64_t M, int64_t C, int64_t row_gap, void* workspace,
                                                    hipStream_t stream) {
    auto* rows = static_cast<float*>(workspace);
    if (auto e = hipMemsetAsync(rows, 0, M * sizeof(float), stream)) return e;
    losses<<<M, kThreads, 0, stream>>>(logits, target, smoothing, rows, C, C + row_gap);
    mean<<<1, kThreads, 0, stream>>>(rows, loss, M);
    return hipGetLastError();
}
