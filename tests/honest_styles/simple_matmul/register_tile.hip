// Shared tiles and four results a thread; AMD's wave barrier behind a macro, bounds by std::min, fma by the compiler.
#include "task.h"

#include <algorithm>
#include <array>
#include <cstddef>

#ifdef __HIP_PLATFORM_AMD__
#define WAVE_BARRIER() __builtin_amdgcn_wave_barrier()
#else
#define WAVE_BARRIER() __syncwarp()
#endif

namespace tile {
static constexpr int M = 32, N = 32, K = 16, kThreads = 256, kEach = M * N / kThreads;
}

__global__ void __launch_bounds__(tile::kThreads) matmul(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) {
    using namespace tile;
    __shared__ float as[K][M + 1];
    __shared__ float bs[K][N];
    const int tx = threadIdx.x % N, ty = threadIdx.x / N;
    const int top = blockIdx.y * M, left = blockIdx.x * N;
    float acc[kEach] = {0.0f};
    for (int k0 = 0; k0 < k; k0 += K) {
        for (int i = threadIdx.x; i < M * K; i += kThreads) {
            const int r = i / K, q = i % K;
            as[q][r] = (top + r < m && k0 + q < k) ? static_cast<float>(a[static_cast<size_t>(top + r) * k + k0 + q]) : 0.f;
        }
        for (int i = threadIdx.x; i < K * N; i += kThreads) {
            const int q = i / N, r = i % N;
            const float v = (k0 + q < k && left + r < n) ? static_cast<float>(b[static_cast<size_t>(k0 + q) * n + left + r]) : 0.f;
            bs[q][r] = v + v;
        }
        __syncthreads();
        const int depth = std::min(K, k - k0);
        for (int q = 0; q < depth; ++q) {
#pragma unroll
            for (int e = 0; e < kEach; ++e) acc[e] = __fmaf_rn(as[q][ty + e * (M / kEach)], bs[q][tx], acc[e]);
        }
        WAVE_BARRIER();
        __syncthreads();
    }
    for (int e = 0; e < kEach; ++e) {
        const int r = top + ty + e * (M / kEach);
        if (r < m && left + tx < n) c[static_cast<size_t>(r) * n + left + tx] = static_cast<T>(acc[e]);
    }
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K, hipStream_t stream) {
    const std::array<unsigned, 2> blocks{static_cast<unsigned>((N + tile::N - 1) / tile::N), static_cast<unsigned>((M + tile::M - 1) / tile::M)};
    matmul<<<dim3(blocks[0], blocks[1]), tile::kThreads, 0, stream>>>(a, b, c, static_cast<int>(M), static_cast<int>(N), static_cast<int>(K));
    if (hipError_t err = hipGetLastError(); err != hipSuccess) return err;
    return hipSuccess;
}
