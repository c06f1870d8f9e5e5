// Kernels that test_hip_cpu_kernels.py launches; each entry is one feature of HIP on the CPU.
#include "task.h"
#include <hip/hip_cooperative_groups.h>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;
constexpr int kBlock = 256;

__global__ void __launch_bounds__(kBlock) scale_kernel(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
extern "C" hipError_t scale(const float* x, float* y, int64_t n, hipStream_t stream) {
    scale_kernel<<<(n + kBlock - 1) / kBlock, kBlock, 0, stream>>>(x, y, static_cast<int>(n));
    return hipGetLastError();
}

__device__ __noinline__ float wave_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset >>= 1) v += __shfl_xor(v, offset);
    return v;
}
template <typename T>
static __device__ inline __forceinline__ T block_sum(T v) {
    __shared__ T partial[kBlock / 32];
    v = wave_sum(v);
    __syncthreads();
    if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = v;
    __syncthreads();
    T total = 0;
    for (int w = 0; w < kBlock / warpSize; ++w) total += partial[w];
    return total;
}
template <typename T, int Unused>
__global__ void layer_norm_kernel(const T* x, T* y, int n) {
    const T* row = x + static_cast<size_t>(blockIdx.x) * n;
    T sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += kBlock) sum += row[i];
    const T mean = block_sum(sum) / n;
    for (int i = threadIdx.x; i < n; i += kBlock) squares += (row[i] - mean) * (row[i] - mean);
    const T scale = rsqrtf(block_sum(squares) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += kBlock) y[static_cast<size_t>(blockIdx.x) * n + i] = (row[i] - mean) * scale;
}
extern "C" hipError_t layer_norm(const float* x, float* y, int64_t m, int64_t n, hipStream_t stream) {
    layer_norm_kernel<float, 4>
        <<<dim3(m), dim3(kBlock),
           0, stream>>>(x, y,  // the rows
                        static_cast<int>(n));
    return hipGetLastError();
}

// Assumes 32 lanes: one slot per 32 threads, and a butterfly from 16 that it takes for the whole wave's.
__global__ void assumes_32_kernel(const float* x, float* y) {
    __shared__ float slots[kBlock / 32];
    float v = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor(v, offset);
    if (__ballot(1) != 0xffffffffull) v = -1.0f;
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0;
        for (float slot : slots) total += slot;
        *y = total;
    }
}
extern "C" hipError_t assumes_32(const float* x, float* y, hipStream_t stream) {
    hipLaunchKernelGGL(assumes_32_kernel, dim3(1), dim3(kBlock), 0, stream, x, y);
    return hipGetLastError();
}

template <int Tile>
__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[Tile][Tile + 1], right[Tile][Tile + 1];
    const int row = blockIdx.y * Tile + threadIdx.y, column = blockIdx.x * Tile + threadIdx.x;
    float sum = 0;
    for (int at = 0; at < k; at += Tile) {
        left[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < n && at + threadIdx.y < k ? b[(at + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < Tile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
#define LAUNCH_MATMUL(TILE)                                  \
    matmul_kernel<TILE><<<dim3((n + TILE - 1) / TILE,        \
                               (m + TILE - 1) / TILE),       \
                          dim3(TILE, TILE), 0, stream>>>(    \
        a, b, c, (int)m, (int)n, (int)k)
extern "C" hipError_t matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k, hipStream_t stream) {
    LAUNCH_MATMUL(16);
    return hipGetLastError();
}

extern __shared__ int outer_dynamic[];  // the same memory as any kernel's own declaration
__global__ void reverse_kernel(int* x) {
    extern __shared__ __align__(16) unsigned char raw[];
    int* mine = reinterpret_cast<int*>(raw);
    mine[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    x[blockIdx.x * blockDim.x + threadIdx.x] = outer_dynamic[blockDim.x - 1 - threadIdx.x];
}
extern "C" hipError_t reverse(int* x, int64_t blocks, int64_t threads, int64_t shared, hipStream_t stream) {
    reverse_kernel<<<blocks, threads, shared, stream>>>(x);
    return hipGetLastError();
}

__global__ void histogram_kernel(const int* x, unsigned* counts, float* sum, int n) {
    __shared__ unsigned local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[x[i]], 1u);
        atomicAdd(sum, 1.0f);
    }
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
extern "C" hipError_t histogram(const int* x, unsigned* counts, float* sum, int64_t n, hipStream_t stream) {
    hipMemsetAsync(counts, 0, 16 * sizeof(unsigned), stream);
    hipMemsetAsync(sum, 0, sizeof(float), stream);
    histogram_kernel<<<16, kBlock, 0, stream>>>(x, counts, sum, n);
    return hipGetLastError();
}

__global__ void atomics_kernel(int* out, unsigned* turns, unsigned long long* wide) {
    const int i = threadIdx.x;
    atomicMax(&out[0], i);
    atomicMin(&out[1], -i);
    atomicOr(&out[2], 1 << (i % 8));
    atomicAnd(&out[3], ~(1 << (i % 8)));
    atomicXor(&out[4], i);
    atomicSub(&out[5], 1);
    int seen = out[6];
    for (int expected = seen - 1; expected != seen;) {
        expected = seen;
        seen = atomicCAS(&out[6], expected, expected + 2);
    }
    if (i == 7) atomicExch(&out[7], 99);
    atomicInc(&turns[0], 9u);
    atomicDec(&turns[1], 9u);
    atomicAdd(wide, 1ull << 33);
}
extern "C" hipError_t atomics(int* out, unsigned* turns, unsigned long long* wide, hipStream_t stream) {
    atomics_kernel<<<1, 100, 0, stream>>>(out, turns, wide);
    return hipGetLastError();
}

// Threads past n return before the barrier and before the shuffles.
__global__ void early_exit_kernel(const float* x, float* y, int n) {
    __shared__ float kept[kBlock];
    const int i = threadIdx.x;
    if (i >= n) return;
    kept[i] = x[i];
    __syncthreads();
    const int arrived = __syncthreads_count(1);
    y[i] = kept[n - 1 - i] + 1000.0f * arrived;
    y[n + i] = __shfl_down(x[i], 1);
}
extern "C" hipError_t early_exit(const float* x, float* y, int64_t n, hipStream_t stream) {
    early_exit_kernel<<<1, kBlock, 0, stream>>>(x, y, n);
    return hipGetLastError();
}

// Lanes take different ways through a wave's operations, as they may on a GPU.
__global__ void diverge_kernel(unsigned long long* out) {
    const int i = threadIdx.x;
    unsigned long long votes = 0;
    if (i % 2 == 0) {
        votes = __ballot(i < 8);
    } else {
        votes = __ballot(i >= 24);
    }
    int rounds = 0;
    for (int left = i % 4; left > 0; --left) rounds += __popcll(__activemask());
    __syncthreads();
    out[i] = votes;
    out[32 + i] = rounds;
    out[64 + i] = i < 16 ? __shfl_xor_sync(0xffffull, i, 1) : __shfl_xor_sync(0xffff0000ull, i, 2);
}
extern "C" hipError_t diverge(unsigned long long* out, hipStream_t stream) {
    diverge_kernel<<<1, 32, 0, stream>>>(out);
    return hipGetLastError();
}

__global__ void wave_kernel(int* out) {
    const int i = threadIdx.x;
    int* const row = out + 16 * i;
    row[0] = __shfl(i, 3, 8);
    row[1] = __shfl_up(i, 2, 16);
    row[2] = __shfl_down(i, 2, 16);
    row[3] = __shfl_xor(i, 5);
    row[4] = __any(i == 5);
    row[5] = __all(i < 1000);
    row[6] = __popcll(__ballot(i % 3 == 0));
    row[7] = __lane_id();
    row[8] = __reduce_add_sync(~0ull, i);
    row[9] = __reduce_max_sync(~0ull, i);
    row[10] = __popcll(__match_any_sync(~0ull, i % 4));
    row[11] = __popcll(__activemask());
    const double wide = __shfl(i + 0.25, 1);
    row[12] = wide == 1.25;
    __syncwarp();
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    row[13] = tile.shfl(i, 2);
    row[14] = tile.thread_rank() + 100 * tile.meta_group_rank();
    row[15] = static_cast<int>(tile.ballot(tile.thread_rank() < 3));
    block.sync();
}
extern "C" hipError_t wave(int* out, hipStream_t stream) {
    wave_kernel<<<1, 64, 0, stream>>>(out);
    return hipGetLastError();
}

__constant__ int table[4];
__global__ void position_kernel(int* out) {
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        table[blockIdx.z] + blockIdx.x + 10 * blockIdx.y + 100 * threadIdx.x + 1000 * threadIdx.y + 10000 * threadIdx.z;
}
extern "C" hipError_t position(int* out, hipStream_t stream) {
    const int values[4] = {0, 1000000, 2000000, 3000000};
    hipMemcpyToSymbol(HIP_SYMBOL(table), values, sizeof values);
    position_kernel<<<dim3(2, 3, 4), dim3(5, 2, 3), 0, stream>>>(out);
    return hipGetLastError();
}

__global__ void stale_kernel(float* out) {
    __shared__ float never_written[8];
    if (threadIdx.x < 8) out[threadIdx.x] = never_written[threadIdx.x];
}
extern "C" hipError_t stale(float* out, hipStream_t stream) {
    stale_kernel<<<1, 32, 0, stream>>>(out);
    return hipGetLastError();
}

__global__ void large_kernel(float* out) {
    extern __shared__ float more[];
    __shared__ float large[8192];  // half of what a block may have
    large[threadIdx.x] = more[0];
    out[threadIdx.x] = 1.0f;
}
extern "C" hipError_t large(float* out, int64_t shared, hipStream_t stream) {
    large_kernel<<<8, 32, shared, stream>>>(out);
    return hipGetLastError();
}

// An argument with a side effect is evaluated once, and a null pointer stays one.
__global__ void arguments_kernel(int* out, int value, const float* nothing) {
    if (threadIdx.x == 0) out[blockIdx.x] = nothing == nullptr ? value : -1;
}
extern "C" hipError_t arguments(int* out, hipStream_t stream) {
    int next = 7;
    arguments_kernel<<<2, 32, 0, stream>>>(out, next++, NULL);
    out[2] = next;
    return hipGetLastError();
}

__global__ void divergent_kernel(int* out) {
    if (threadIdx.x < 5) {
        __syncthreads();
    } else {
        out[0] = 1;
        __syncthreads();
    }
}
extern "C" hipError_t divergent(int* out, hipStream_t stream) {
    divergent_kernel<<<1, 64, 0, stream>>>(out);
    return hipGetLastError();
}
__global__ void missing_lane_kernel(int* out) {
    if (threadIdx.x < 5) {
        out[0] = __shfl_xor_sync(0xffffffffull, 1, 1);
    } else {
        __syncthreads();
    }
    __syncthreads();
}
extern "C" hipError_t missing_lane(int* out, hipStream_t stream) {
    missing_lane_kernel<<<1, 32, 0, stream>>>(out);
    return hipGetLastError();
}

__device__ int at_once;
__global__ void alone_kernel(int* seen, int* ran) {
    const int now = atomicAdd(&at_once, 1) + 1;
    atomicMax(&seen[1], now);
    atomicAdd(ran, 1);
    for (volatile int wait = 0; wait < 20000; wait = wait + 1) {
    }
    atomicSub(&at_once, 1);
}
extern "C" hipError_t from_threads(int* seen, int* ran, int64_t threads, hipStream_t stream) {
    std::vector<std::thread> all;
    for (int64_t i = 0; i < threads; ++i) {
        all.emplace_back([=] {
            for (int launch = 0; launch < 50; ++launch) alone_kernel<<<1, 1, 0, stream>>>(seen, ran);
        });
    }
    for (std::thread& one : all) one.join();
    return hipGetLastError();
}

__global__ void sevens_kernel(char* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 7;
}
extern "C" hipError_t set_by_kernel(char* x, int64_t n, hipStream_t stream) {
    sevens_kernel<<<1, 64, 0, stream>>>(x, n);
    return hipGetLastError();
}
extern "C" hipError_t set_by_memset(char* x, int64_t n, hipStream_t stream) { return hipMemsetAsync(x, 7, n, stream); }
extern "C" hipError_t set_by_copy(char* x, int64_t n, hipStream_t stream) {
    const std::vector<char> sevens(n, 7);
    return hipMemcpyAsync(x, sevens.data(), n, hipMemcpyHostToDevice, stream);
}
extern "C" hipError_t set_by_host(char* x, int64_t n, hipStream_t) {
    for (int64_t i = 0; i < n; ++i) x[i] = 7;
    return hipSuccess;
}
