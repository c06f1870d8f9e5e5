// Masked-language-model head. The logits: a tile of them a block, a patch of it in the registers of each of 256
// threads, two slices of x and weight in shared memory, one being multiplied while the next is on its way. They
// are rounded to y. Then a block a row: maximum and sum of exponentials in one pass (online, after Milakov and
// Gimelshein, 2018), and the difference in place.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kSide = 16;   // threads along either side of a tile
constexpr int kDepth = 8;   // of a step along H
constexpr int kV = 4;       // elements a load
constexpr int kGroup = 32;  // lanes that shuffle: a wave, or half of one

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

struct Sizes {
    int64_t rows, classes, depth;
    bool whole;  // whether packs along H are aligned
};

// Elements first … first + 3 of a row of x or weight, zero past its end; `inside`: whether there is such a row.
template <typename E>
__device__ __forceinline__ Pack<float, kV> load4(const E* row, int64_t first, const Sizes& sizes, bool inside) {
    Pack<float, kV> values = {};
    if (!inside) return values;
    if (sizes.whole && first + kV <= sizes.depth) {
        const Pack<E, kV> pack = *reinterpret_cast<const Pack<E, kV>*>(row + first);
#pragma unroll
        for (int i = 0; i < kV; ++i) values.element[i] = static_cast<float>(pack.element[i]);
    } else {
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            if (first + i < sizes.depth) values.element[i] = static_cast<float>(row[first + i]);
        }
    }
    return values;
}

// kDepth numbers each of Tile rows of a matrix: on their way in registers, then in shared memory, transposed.
template <int Tile>
struct Strip {
    static constexpr int kPacks = Tile * kDepth / kV, kLoads = (kPacks + kThreads - 1) / kThreads;
    Pack<float, kV> held[kLoads];

    template <typename E>
    __device__ __forceinline__ void fetch(const E* matrix, int64_t top, int64_t bottom, int64_t k,
                                          const Sizes& sizes) {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int pack = threadIdx.x + l * kThreads;
            if (pack >= kPacks) break;
            const int64_t row = top + pack / (kDepth / kV);
            held[l] = load4(matrix + row * sizes.depth, k + pack % (kDepth / kV) * kV, sizes, row < bottom);
        }
    }
    __device__ __forceinline__ void keep(float (&shared)[kDepth][Tile + kV]) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int pack = threadIdx.x + l * kThreads;
            if (pack >= kPacks) break;
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                shared[pack % (kDepth / kV) * kV + i][pack / (kDepth / kV)] = held[l].element[i];
            }
        }
    }
};

// How the tile's rows, or its columns, are dealt to 16 threads: each gets Tile / 16 of them in runs of kRun that
// lie kApart from each other, so that neighbouring threads read neighbouring words of shared memory.
template <int Tile>
struct Deal {
    static constexpr int kEach = Tile / kSide, kRun = kEach < kV ? kEach : kV, kApart = kSide * kRun;
    __device__ static __forceinline__ int at(int thread, int i) {
        return i / kRun * kApart + thread * kRun + i % kRun;
    }
    __device__ static __forceinline__ void read(const float* line, int thread, float (&values)[kEach]) {
#pragma unroll
        for (int i = 0; i < kEach; i += kRun) {
            const Pack<float, kRun> run = *reinterpret_cast<const Pack<float, kRun>*>(line + at(thread, i));
#pragma unroll
            for (int j = 0; j < kRun; ++j) values[i + j] = run.element[j];
        }
    }
};

template <int Down, int Across, typename E>
__global__ void __launch_bounds__(kThreads, 2)
    logits_kernel(const E* __restrict__ x, const E* __restrict__ weight, const E* __restrict__ bias,
                  E* __restrict__ y, Sizes sizes) {
    using Rows = Deal<Down>;
    using Columns = Deal<Across>;
    __shared__ alignas(16) float left[2][kDepth][Down + kV];
    __shared__ alignas(16) float right[2][kDepth][Across + kV];
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
    const int64_t top = int64_t{blockIdx.x} * Down, start = int64_t{blockIdx.y} * Across;
    float sums[Rows::kEach][Columns::kEach] = {};
    Strip<Down> next_left;
    Strip<Across> next_right;
    int now = 1;
    for (int64_t k = -kDepth; k < sizes.depth; k += kDepth, now ^= 1) {  // the first round only fetches
        const bool more = k + kDepth < sizes.depth;
        if (more) {
            next_left.fetch(x, top, sizes.rows, k + kDepth, sizes);
            next_right.fetch(weight, start, sizes.classes, k + kDepth, sizes);
        }
        if (k >= 0) {
#pragma unroll
            for (int d = 0; d < kDepth; ++d) {
                float down[Rows::kEach], across[Columns::kEach];
                Rows::read(left[now][d], ty, down);
                Columns::read(right[now][d], tx, across);
#pragma unroll
                for (int i = 0; i < Rows::kEach; ++i) {
#pragma unroll
                    for (int j = 0; j < Columns::kEach; ++j) sums[i][j] = fmaf(down[i], across[j], sums[i][j]);
                }
            }
        }
        if (more) {
            next_left.keep(left[now ^ 1]);
            next_right.keep(right[now ^ 1]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < Columns::kEach; ++j) {
        const int64_t column = start + Columns::at(tx, j);
        if (column >= sizes.classes) continue;
        const float shift = static_cast<float>(bias[column]);
#pragma unroll
        for (int i = 0; i < Rows::kEach; ++i) {
            const int64_t row = top + Rows::at(ty, i);
            if (row < sizes.rows) y[row * sizes.classes + column] = static_cast<E>(sums[i][j] + shift);
        }
    }
}

// Of the logits seen so far: the largest, and the sum of exp(logit - largest).
struct Digest {
    float largest, sum;
    __device__ __forceinline__ void join(Digest other) {
        const float larger = fmaxf(largest, other.largest);
        if (larger == -INFINITY) return;
        sum = sum * __expf(largest - larger) + other.sum * __expf(other.largest - larger);
        largest = larger;
    }
    __device__ __forceinline__ void join_across(int distance) {
        join({__shfl_xor(largest, distance, kGroup), __shfl_xor(sum, distance, kGroup)});
    }
};

template <int Lanes, typename E>
__global__ void __launch_bounds__(Lanes) log_softmax_kernel(E* __restrict__ y, int classes) {
    constexpr int V = 16 / sizeof(E), kParts = Lanes / kGroup;
    __shared__ Digest parts[kParts];
    E* row = y + static_cast<int64_t>(blockIdx.x) * classes;
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(E) % V);
    const int head = min((V - past) % V, classes), packs = (classes - head) / V, rest = head + packs * V;
    Pack<E, V>* body = reinterpret_cast<Pack<E, V>*>(row + head);
    const int lane = static_cast<int>(threadIdx.x);
    Digest digest{-INFINITY, 0.0f};
#pragma unroll 2
    for (int at = lane; at < packs; at += Lanes) {
        const Pack<E, V> pack = body[at];
        Digest few{-INFINITY, 0.0f};
#pragma unroll
        for (int i = 0; i < V; ++i) few.largest = fmaxf(few.largest, static_cast<float>(pack.element[i]));
#pragma unroll
        for (int i = 0; i < V; ++i) few.sum += __expf(static_cast<float>(pack.element[i]) - few.largest);
        digest.join(few);
    }
    if (lane < head) digest.join({static_cast<float>(row[lane]), 1.0f});
    if (rest + lane < classes) digest.join({static_cast<float>(row[rest + lane]), 1.0f});
    for (int distance = kGroup / 2; distance > 0; distance /= 2) digest.join_across(distance);
    if (lane % kGroup == 0) parts[lane / kGroup] = digest;
    __syncthreads();
    digest = parts[lane % kParts];
    for (int distance = kParts / 2; distance > 0; distance /= 2) digest.join_across(distance);
    const float log_sum = digest.largest + logf(digest.sum);
#pragma unroll 2
    for (int at = lane; at < packs; at += Lanes) {
        Pack<E, V> pack = body[at];
#pragma unroll
        for (int i = 0; i < V; ++i) {
            pack.element[i] = static_cast<E>(static_cast<float>(pack.element[i]) - log_sum);
        }
        body[at] = pack;
    }
    if (lane < head) row[lane] = static_cast<E>(static_cast<float>(row[lane]) - log_sum);
    if (rest + lane < classes) row[rest + lane] = static_cast<E>(static_cast<float>(row[rest + lane]) - log_sum);
}

template <int Down, int Across>
void launch(const T* x, const T* weight, const T* bias, T* y, const Sizes& sizes, hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>((sizes.rows + Down - 1) / Down),
                    static_cast<unsigned>((sizes.classes + Across - 1) / Across));
    logits_kernel<Down, Across><<<grid, kThreads, 0, stream>>>(x, weight, bias, y, sizes);
}

extern "C" hipError_t masked_language_model_head(const T* x, const T* weight, const T* bias, T* y, int64_t M,
                                                 int64_t V, int64_t H, hipStream_t stream) {
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight);
    const Sizes sizes{M, V, H, H % kV == 0 && addresses % sizeof(Pack<T, kV>) == 0};
    const auto tiles = [&](int64_t down, int64_t across) {
        return ((M + down - 1) / down) * ((V + across - 1) / across);
    };
    if (M <= 16) {
        launch<16, 64>(x, weight, bias, y, sizes, stream);
    } else if (M > 64 && V > 64 && tiles(128, 128) >= 128) {
        launch<128, 128>(x, weight, bias, y, sizes, stream);
    } else if (tiles(64, 64) >= 128) {
        launch<64, 64>(x, weight, bias, y, sizes, stream);
    } else {
        launch<32, 32>(x, weight, bias, y, sizes, stream);  // few tiles: rather more blocks than more work for each
    }
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    const unsigned rows = static_cast<unsigned>(M);
    const int classes = static_cast<int>(V);
    if (classes <= 16384) {
        log_softmax_kernel<256><<<rows, 256, 0, stream>>>(y, classes);
    } else {
        log_softmax_kernel<1024><<<rows, 1024, 0, stream>>>(y, classes);
    }
    return hipGetLastError();
}
