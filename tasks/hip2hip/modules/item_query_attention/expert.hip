// Additive attention over the items of support sets: both projections by matrix products into float32 scratch memory;
// scores of tiles of queries and items; then a block for eight queries and one set: a wave a query for the softmax, the
// block for the weighted sums.
#define ARENA_WORKSPACE
#include "task.h"
#include "matrix.h"

#include <math.h>
#include <algorithm>
#include <type_traits>

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

static int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// A matrix product: a block has a Tile × Tile piece of a result. While one slice of both operands is
// multiplied in shared memory, the next is on its way in registers. 16-bit elements are multiplied by matrix units, up
// to 4 × 4 tiles of 16 × 16 a wave; float32 in patches of up to 8 × 8 a thread.
template <typename E>
constexpr bool by_units = sizeof(E) == 2;
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kUnitThreads = 128, kSlices = 2, kUnrolled = 16;
#else
// Four waves of 64 lanes, one for each SIMD of a CDNA compute unit; with one slice, its 64 KiB of LDS hold two blocks.
constexpr int kUnitThreads = 256, kSlices = 1, kUnrolled = 8;  // with 16, float32 has no registers left
#endif
template <typename E>
constexpr int kThreads = by_units<E> ? kUnitThreads : 256;
template <typename E>
constexpr int kDepth = by_units<E> ? 32 : 16;  // of a slice
template <typename E>
constexpr int kPack = 16 / sizeof(E);  // elements of a load
constexpr int kFew = 128;              // fewer blocks leave multiprocessors idle

// Element (line, k) lies at line * stride + k. Lines are the rows of a or the columns of b.
template <typename E>
struct Matrix {
    const E* data;
    int64_t stride;
    int aligned;  // bytes that every line's address is a multiple of, at most 16

    Matrix(const E* data, int64_t stride) : data(data), stride(stride), aligned(16) {
        const uintptr_t all = reinterpret_cast<uintptr_t>(data) | stride * sizeof(E);
        while (all % aligned != 0) aligned /= 2;
    }
};

template <typename E>
struct Product {
    Matrix<E> a, b;
    int64_t rows, columns, depth;
};

using Words = matrix::Pack<4>;  // what one load brings; compilers keep 16-bit elements apart

// A pack of which `length` elements are to be had, zero after them; `from` is a multiple of `aligned` bytes.
template <typename E>
__device__ __forceinline__ void load_pack(Words& words, const E* from, int length, int aligned) {
    if (length >= kPack<E> && aligned >= 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words.word[i] = reinterpret_cast<const uint32_t*>(from)[i];
        return;
    }
    Pack<E, kPack<E>> pack;
#pragma unroll
    for (int i = 0; i < kPack<E>; ++i) pack.element[i] = i < length ? from[i] : E(0.0f);
    __builtin_memcpy(&words, &pack, sizeof words);
}

// A slice of an operand in shared memory: lines of k for matrix units, else rows of lines. They are 16 bytes longer
// than what they hold, so that what is read at once lies in different banks.
template <int Tile, typename E>
struct Slice {
    static constexpr int kLength = (by_units<E> ? kDepth<E> : Tile) + kPack<E>;
    alignas(16) E element[by_units<E> ? Tile : kDepth<E>][kLength];
};

// A thread's part of the next slice: packs of lines that lie kStep apart.
template <int Tile, typename E>
struct Staged {
    static constexpr int V = kPack<E>, kAcross = kDepth<E> / V, kStep = kThreads<E> / kAcross;
    static constexpr int kLoads = Tile * kDepth<E> / V / kThreads<E>;
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines, aligned;

    __device__ __forceinline__ Staged(const Matrix<E>& m, int64_t top, int64_t all)
        : from(m.data + threadIdx.x % kAcross * V + (top + threadIdx.x / kAcross) * m.stride), stride(m.stride),
          row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Tile ? all - top : Tile)), aligned(m.aligned) {}
    // `left`: how much of the depth is.
    __device__ __forceinline__ void fetch(int64_t left) {
        const int depth = left < kDepth<E> ? static_cast<int>(left) : kDepth<E>;
        if (aligned == 16 && lines == Tile && depth == kDepth<E>) {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) packs[l] = *reinterpret_cast<const Words*>(from + l * kStep * stride);
        } else {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) {
                load_pack(packs[l], from + l * kStep * stride, row + l * kStep < lines ? depth - column : 0, aligned);
            }
        }
        from += kDepth<E>;
    }
    __device__ __forceinline__ void keep(Slice<Tile, E>& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int at = row + l * kStep;
            if constexpr (by_units<E>) {
                *reinterpret_cast<Words*>(&slice.element[at][column]) = packs[l];
            } else {
#pragma unroll
                for (int i = 0; i < V; ++i) slice.element[column + i][at] = __uint_as_float(packs[l].word[i]);
            }
        }
    }
};

// What a wave has of a block's tile; two rows of waves share it.
template <int Tile, typename E>
struct UnitSums {
    static constexpr int kAcross = kThreads<E> / matrix::kLanes / 2, kDown = Tile / 32, kWide = Tile / 16 / kAcross;
    matrix::Accumulator sums[kDown * kWide];

    __device__ __forceinline__ int top() const { return threadIdx.x / matrix::kLanes / kAcross * kDown * 16; }
    __device__ __forceinline__ int start() const { return threadIdx.x / matrix::kLanes % kAcross * kWide * 16; }
    __device__ __forceinline__ void multiply(const Slice<Tile, E>& a, const Slice<Tile, E>& b) {
#pragma unroll
        for (int k = 0; k < kDepth<E>; k += 16) {
            matrix::FragmentA<E> one[kDown];
            matrix::FragmentB<E> other[kWide];
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
                matrix::load_shared<matrix::row_major>(one[i], &a.element[top() + 16 * i][k], a.kLength);
            }
#pragma unroll
            for (int j = 0; j < kWide; ++j) {
                matrix::load_shared<matrix::column_major>(other[j], &b.element[start() + 16 * j][k], b.kLength);
            }
#pragma unroll
            for (int t = 0; t < kDown * kWide; ++t) {
                matrix::multiply_accumulate(sums[t], one[t / kWide], other[t % kWide]);
            }
        }
    }
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
#pragma unroll
        for (int t = 0; t < kDown * kWide; ++t) {
            matrix::for_each(sums[t], [&](int row, int column, float& value) {
                action(top() + t / kWide * 16 + row, start() + t % kWide * 16 + column, value);
            });
        }
    }
};

// What a thread has of it in float32: pieces of 4 × 4, so that neighbouring threads read neighbouring words.
template <int Tile>
struct PatchSums {
    static constexpr int W = 4, kKept = Tile / 16, kPieces = kKept / W, kApart = Tile / kPieces;
    float sums[kKept * kKept] = {};

    __device__ __forceinline__ void multiply(const Slice<Tile, float>& a, const Slice<Tile, float>& b) {
        const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll kUnrolled
        for (int d = 0; d < kDepth<float>; ++d) {
            Pack<float, W> down[kPieces], across[kPieces];
#pragma unroll
            for (int p = 0; p < kPieces; ++p) {
                down[p] = *reinterpret_cast<const Pack<float, W>*>(&a.element[d][p * kApart + ty * W]);
                across[p] = *reinterpret_cast<const Pack<float, W>*>(&b.element[d][p * kApart + tx * W]);
            }
#pragma unroll
            for (int t = 0; t < kKept * kKept; ++t) {
                const int i = t / kKept, j = t % kKept;
                sums[t] = fmaf(down[i / W].element[i % W], across[j / W].element[j % W], sums[t]);
            }
        }
    }
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
        const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
        for (int t = 0; t < kKept * kKept; ++t) {
            const int i = t / kKept, j = t % kKept;
            action(i / W * kApart + ty * W + i % W, j / W * kApart + tx * W + j % W, sums[t]);
        }
    }
};

template <int Tile, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kThreads<E>, 2) product_kernel(Product<E> p, C* c, Finish finish) {
    __shared__ Slice<Tile, E> left[kSlices], right[kSlices];
    const unsigned down = (p.rows + Tile - 1) / Tile;
    const int64_t top = int64_t{blockIdx.x % down} * Tile, start = int64_t{blockIdx.x / down} * Tile;
    std::conditional_t<by_units<E>, UnitSums<Tile, E>, PatchSums<Tile>> sums;
    Staged<Tile, E> next_a(p.a, top, p.rows), next_b(p.b, start, p.columns);
    next_a.fetch(p.depth);
    next_b.fetch(p.depth);
    next_a.keep(left[0]);
    next_b.keep(right[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = 0; k < p.depth; k += kDepth<E>) {
        const int64_t rest = p.depth - k - kDepth<E>;
        const bool more = rest > 0;
        if (more) next_a.fetch(rest), next_b.fetch(rest);
        sums.multiply(left[now], right[now]);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (more) next_a.keep(left[now]), next_b.keep(right[now]);
        __syncthreads();
    }
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = start + column;
        if (m < p.rows && n < p.columns) c[m * p.columns + n] = static_cast<C>(finish(sum, n));
    });
}

static int64_t tiles_of(int64_t rows, int64_t columns, int64_t tile) {
    return parts_of(rows, tile) * parts_of(columns, tile);
}

// c = finish(a × b), dense.
template <typename E, typename C, typename Finish>
static hipError_t product(Matrix<E> a, Matrix<E> b, C* c, int64_t rows, int64_t columns, int64_t depth, Finish finish,
                          hipStream_t stream) {
    const Product<E> p{a, b, rows, columns, depth};
    const bool large = tiles_of(rows, columns, 128) >= kFew;
    const dim3 grid(tiles_of(rows, columns, large ? 128 : 64));
    if (large) product_kernel<128><<<grid, kThreads<E>, 0, stream>>>(p, c, finish);
    if (!large) product_kernel<64><<<grid, kThreads<E>, 0, stream>>>(p, c, finish);
    return hipGetLastError();
}

constexpr int kRowThreads = 256;
constexpr int kMostItems = 2048;  // of a set
constexpr int kQueries = 8;       // of a block that gathers, which share a set of few items
constexpr int kSide = 32, kStep = 32;  // items of a block that scores; part of the width that it takes a round
constexpr float kMost = 43.0f;         // exp(2 × 43) is finite

struct Biased {
    const T* bias;
    __device__ float operator()(float sum, int64_t column) const {
        return bias == nullptr ? sum : sum + static_cast<float>(bias[column]);
    }
};

struct Sizes { int64_t sets, items, queries, features, width; };

// Scores of 8 × Down queries of an episode and 32 items of its sets: 32 threads have 8 × 16 of them, a thread 2 × 2. A
// number that all scores have in common is left out, since softmax cancels it. tanh(s + q) is 1 - 2 / (e + 1), where
// e = exp(2 s) exp(2 q), so that a pair costs one reciprocal; where a projection is large, e = exp(2 (s + q)).
template <int Down>
__global__ void __launch_bounds__(64 * Down)
    score_kernel(const float* of_support, const float* of_query, const T* score_weight, float* scores, Sizes sizes) {
    constexpr int kThreads = 64 * Down, kAsked = 8 * Down;
    __shared__ alignas(16) float support[kStep][kSide + 2], query[kStep][kAsked + 2], weights[kStep];
    const int64_t items = sizes.sets * sizes.items, across = (items + kSide - 1) / kSide;
    const int64_t down = (sizes.queries + kAsked - 1) / kAsked, episode = blockIdx.x / (across * down);
    const int64_t top = blockIdx.x / across % down * kAsked, side = blockIdx.x % across * kSide;
    const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
    const int row = group % Down * 8 + lane / 8 * 2, column = group / Down * 16 + lane % 8 * 2;
    const int rows = static_cast<int>(sizes.queries - top), columns = static_cast<int>(items - side);
    const float* from_support = of_support + (episode * items + side) * sizes.width;
    const float* from_query = of_query + (episode * sizes.queries + top) * sizes.width;
    constexpr int kApart = kThreads / kStep, kLoads = kSide / kApart;
    const int k = threadIdx.x % kStep, first = threadIdx.x / kStep;
    float sums[4] = {};
    for (int64_t start = 0; start < sizes.width; start += kStep) {
        // Past the ends, any number will do: its weight is zero, or its sum is not stored.
        const int64_t at = start + k < sizes.width ? start + k : sizes.width - 1;
        float loaded[2][kLoads], most = 0.0f;
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int line = first + l * kApart;
            loaded[0][l] = from_support[(line < columns ? line : columns - 1) * sizes.width + at];
            loaded[1][l] = line < kAsked ? from_query[(line < rows ? line : rows - 1) * sizes.width + at] : 0.0f;
            most = fmaxf(most, fmaxf(fabsf(loaded[0][l]), fabsf(loaded[1][l])));
        }
        const bool large = __syncthreads_or(most > kMost);
        for (int l = 0; l < kLoads; ++l) {
            const int line = first + l * kApart;
            support[k][line] = large ? loaded[0][l] : expf(2.0f * loaded[0][l]);
            if (line < kAsked) query[k][line] = large ? loaded[1][l] : expf(2.0f * loaded[1][l]);
        }
        if (first == 0) weights[k] = start + k < sizes.width ? -2.0f * static_cast<float>(score_weight[at]) : 0.0f;
        __syncthreads();
        if (row >= rows || column >= columns) continue;
        const auto add = [&](auto exponential) {
#pragma unroll 8
            for (int d = 0; d < kStep; ++d) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float e = exponential(query[d][row + i / 2], support[d][column + i % 2]);
                    sums[i] += __fdividef(weights[d], e + 1.0f);
                }
            }
        };
        if (large) add([](float q, float s) { return expf(2.0f * (q + s)); });
        if (!large) add([](float q, float s) { return q * s; });
    }
    for (int i = 0; i < 4; ++i) {
        if (row + i / 2 >= rows || column + i % 2 >= columns) continue;
        scores[(episode * sizes.queries + top + row + i / 2) * items + side + column + i % 2] = sums[i];
    }
}

// A wave turns a query's scores into weights that are not divided by their sum yet, which it returns.
__device__ float exponentiate(const float* scores, float* weights, int64_t items) {
    const int lane = threadIdx.x % warpSize;
    float largest = scores[0], total = 0.0f;
    for (int64_t k = lane; k < items; k += warpSize) largest = fmaxf(largest, scores[k]);
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        largest = fmaxf(largest, __shfl_xor(largest, distance));
    }
    for (int64_t k = lane; k < items; k += warpSize) {
        weights[k] = expf(scores[k] - largest);
        total += weights[k];
    }
    for (int distance = warpSize / 2; distance > 0; distance /= 2) total += __shfl_xor(total, distance);
    return total;
}

// A block answers `Queries` queries about one set: what it reads of the set's items serves all of them.
template <int Queries>
__global__ void __launch_bounds__(kRowThreads)
    gather_kernel(const T* support, const float* scores, T* y, Sizes sizes) {
    __shared__ float weights[Queries][kMostItems / Queries], totals[Queries];
    const int64_t groups = (sizes.queries + Queries - 1) / Queries;
    const int64_t set = blockIdx.x / groups, episode = set / sizes.sets;  // of all episodes
    const int64_t begin = blockIdx.x % groups * Queries, left = sizes.queries - begin;
    const int count = static_cast<int>(left < Queries ? left : Queries), all = static_cast<int>(sizes.items);
    for (int q = threadIdx.x / warpSize; q < count; q += kRowThreads / warpSize) {
        const int64_t of_query = (episode * sizes.queries + begin + q) * sizes.sets + set % sizes.sets;
        totals[q] = exponentiate(scores + of_query * all, weights[q], all);
    }
    __syncthreads();
    const T* items = support + set * sizes.items * sizes.features;
    for (int64_t d = threadIdx.x; d < sizes.features; d += kRowThreads) {
        float sums[Queries] = {};
#pragma unroll 4
        for (int k = 0; k < all; ++k) {
            const float value = static_cast<float>(items[k * sizes.features + d]);
#pragma unroll
            for (int q = 0; q < Queries; ++q) sums[q] += weights[q][k] * value;
        }
#pragma unroll
        for (int q = 0; q < Queries; ++q) {
            if (q >= count) break;
            const int64_t asked = episode * sizes.queries + begin + q;
            y[(asked * sizes.sets + set % sizes.sets) * sizes.features + d] = static_cast<T>(sums[q] / totals[q]);
        }
    }
}

static hipError_t score(const T* score_weight, const float* of_support, const float* of_query, float* scores,
                        int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const int64_t across = batch * parts_of(sizes.sets * sizes.items, kSide);
    const bool many = across * parts_of(sizes.queries, 32) >= kFew;
    const auto launch = many ? score_kernel<4> : score_kernel<1>;
    const int64_t blocks = across * parts_of(sizes.queries, many ? 32 : 8);
    launch<<<blocks, many ? 256 : 64, 0, stream>>>(of_support, of_query, score_weight, scores, sizes);
    return hipGetLastError();
}

static hipError_t gather(const T* support, const float* scores, T* y, int64_t batch, const Sizes& sizes,
                         hipStream_t stream) {
    const int64_t sets = batch * sizes.sets, together = parts_of(sizes.queries, kQueries);
    // Fewer blocks than these leave multiprocessors idle, which costs more than to read a set again.
    if (sizes.items * kQueries <= kMostItems && sets * together >= 2 * kFew) {
        gather_kernel<kQueries><<<sets * together, kRowThreads, 0, stream>>>(support, scores, y, sizes);
    } else {
        gather_kernel<1><<<sets * sizes.queries, kRowThreads, 0, stream>>>(support, scores, y, sizes);
    }
    return hipGetLastError();
}

extern "C" size_t item_query_attention_workspace(int64_t B, int64_t N, int64_t K, int64_t Q, int64_t, int64_t A) {
    return B * ((N * K + Q) * A + Q * N * K) * sizeof(float);
}

extern "C" hipError_t item_query_attention(const T* support, const T* query, const T* support_weight,
                                           const T* query_weight, const T* bias, const T* score_weight, T* y, int64_t B,
                                           int64_t N, int64_t K, int64_t Q, int64_t D, int64_t A, void* workspace,
                                           hipStream_t stream) {
    float *of_support = static_cast<float*>(workspace), *of_query = of_support + B * N * K * A;
    float* scores = of_query + B * Q * A;
    const Matrix<T> items(support, D), queries(query, D), of_items(support_weight, D), of_queries(query_weight, D);
    const Sizes sizes{N, K, Q, D, A};
    return std::max({  // in this order; success is 0
        product(items, of_items, of_support, B * N * K, A, D, Biased{nullptr}, stream),
        product(queries, of_queries, of_query, B * Q, A, D, Biased{bias}, stream),
        score(score_weight, of_support, of_query, scores, B, sizes, stream),
        gather(support, scores, y, B, sizes, stream)});
}
