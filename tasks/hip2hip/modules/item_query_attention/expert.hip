// Additive attention over the items of support sets: both projections by matrix products into float32 scratch memory,
// then a block for eight queries and one set: a wave a query for scores and softmax, the block for the weighted sums.
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
constexpr unsigned kTogether = 8;      // blocks side by side that have tiles one above the other, for the cache

// Element (line, k) lies at line * stride + k if `along`, else at k * stride + line. Lines are the rows of a or the
// columns of b.
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

// What one load brings. As words, since compilers keep 16-bit elements apart.
struct alignas(16) Words {
    uint32_t word[4];
};

template <int Count>
__device__ __forceinline__ void load_words(Words& words, const void* from) {
#pragma unroll
    for (int i = 0; i < 4; i += Count) {
        using Piece = Pack<uint32_t, Count>;
        *reinterpret_cast<Piece*>(&words.word[i]) = static_cast<const Piece*>(from)[i / Count];
    }
}

// A pack of which `length` elements are to be had, zero after them; `from` is a multiple of `aligned` bytes.
template <typename E>
__device__ __forceinline__ void load_pack(Words& words, const E* from, int length, int aligned) {
    if (length >= kPack<E>) {
        if (aligned == 16) return load_words<4>(words, from);
        if (aligned == 8) return load_words<2>(words, from);
        if (aligned == 4) return load_words<1>(words, from);
    }
    Pack<E, kPack<E>> pack;
#pragma unroll
    for (int i = 0; i < kPack<E>; ++i) pack.element[i] = i < length ? from[i] : E(0.0f);
    __builtin_memcpy(&words, &pack, sizeof words);
}

// A slice of an operand in shared memory: lines of k for matrix units, else rows of lines. They are 16 bytes longer
// than what they hold, so that what is read at once lies in different banks.
template <int Tile, bool along, typename E>
struct Slice {
    static constexpr bool kLines = along && by_units<E>;
    static constexpr int kLength = (kLines ? kDepth<E> : Tile) + kPack<E>;
    alignas(16) E element[kLines ? Tile : kDepth<E>][kLength];
};

// A thread's part of the next slice: packs that lie kStep rows apart, rows of lines if `along`, else rows of k.
template <int Tile, bool along, typename E>
struct Staged {
    static constexpr int V = kPack<E>, kAcross = (along ? kDepth<E> : Tile) / V, kStep = kThreads<E> / kAcross;
    static constexpr int kLoads = Tile * kDepth<E> / V / kThreads<E>;
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines, aligned;

    __device__ __forceinline__ Staged(const Matrix<E>& m, int64_t top, int64_t all)
        : stride(m.stride), row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Tile ? all - top : Tile)), aligned(m.aligned) {
        from = m.data + column + (along ? (top + row) * stride : row * stride + top);
    }
    // `left`: how much of the depth is.
    __device__ __forceinline__ void fetch(int64_t left) {
        const int depth = left < kDepth<E> ? static_cast<int>(left) : kDepth<E>;
        const int rows = along ? lines : depth, length = (along ? depth : lines) - column;
        if (aligned == 16 && lines == Tile && depth == kDepth<E>) {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) load_words<4>(packs[l], from + l * kStep * stride);
        } else {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) {
                load_pack(packs[l], from + l * kStep * stride, row + l * kStep < rows ? length : 0, aligned);
            }
        }
        from += along ? kDepth<E> : kDepth<E> * stride;
    }
    __device__ __forceinline__ void keep(Slice<Tile, along, E>& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int at = row + l * kStep;
            if constexpr (along && !by_units<E>) {
#pragma unroll
                for (int i = 0; i < V; ++i) slice.element[column + i][at] = __uint_as_float(packs[l].word[i]);
            } else {
                *reinterpret_cast<Words*>(&slice.element[at][column]) = packs[l];
            }
        }
    }
};

// What a wave has of a block's tile; two rows of waves share it.
template <int Tile, bool along_a, bool along_b, typename E>
struct UnitSums {
    static constexpr int kAcross = kThreads<E> / matrix::kLanes / 2, kDown = Tile / 32, kWide = Tile / 16 / kAcross;
    matrix::Accumulator sums[kDown * kWide];

    __device__ __forceinline__ int top() const { return threadIdx.x / matrix::kLanes / kAcross * kDown * 16; }
    __device__ __forceinline__ int start() const { return threadIdx.x / matrix::kLanes % kAcross * kWide * 16; }
    __device__ __forceinline__ void multiply(const Slice<Tile, along_a, E>& a, const Slice<Tile, along_b, E>& b) {
        constexpr matrix::Layout left = along_a ? matrix::row_major : matrix::column_major;
        constexpr matrix::Layout right = along_b ? matrix::column_major : matrix::row_major;
#pragma unroll
        for (int k = 0; k < kDepth<E>; k += 16) {
            matrix::FragmentA<E> one[kDown];
            matrix::FragmentB<E> other[kWide];
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
                const int line = top() + 16 * i;
                matrix::load_shared<left>(one[i], along_a ? &a.element[line][k] : &a.element[k][line], a.kLength);
            }
#pragma unroll
            for (int j = 0; j < kWide; ++j) {
                const int line = start() + 16 * j;
                matrix::load_shared<right>(other[j], along_b ? &b.element[line][k] : &b.element[k][line], b.kLength);
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
template <int Tile, bool along_a, bool along_b>
struct PatchSums {
    static constexpr int W = 4, kKept = Tile / 16, kPieces = kKept / W, kApart = Tile / kPieces;
    float sums[kKept * kKept] = {};

    __device__ __forceinline__ void multiply(const Slice<Tile, along_a, float>& a,
                                             const Slice<Tile, along_b, float>& b) {
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

template <int Tile, bool along_a, bool along_b, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kThreads<E>, 2) product_kernel(Product<E> p, C* c, Finish finish) {
    __shared__ Slice<Tile, along_a, E> left[kSlices];
    __shared__ Slice<Tile, along_b, E> right[kSlices];
    const unsigned down = (p.rows + Tile - 1) / Tile, across = (p.columns + Tile - 1) / Tile;
    const unsigned tile = blockIdx.x % (down * across), group = tile / (kTogether * across) * kTogether;
    const unsigned within = tile % (kTogether * across), height = down - group < kTogether ? down - group : kTogether;
    const int64_t top = int64_t{group + within % height} * Tile, start = int64_t{within / height} * Tile;
    std::conditional_t<by_units<E>, UnitSums<Tile, along_a, along_b, E>, PatchSums<Tile, along_a, along_b>> sums;
    Staged<Tile, along_a, E> next_a(p.a, top, p.rows);
    Staged<Tile, along_b, E> next_b(p.b, start, p.columns);
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
template <bool along_a, bool along_b, typename E, typename C, typename Finish>
static hipError_t product(Matrix<E> a, Matrix<E> b, C* c, int64_t rows, int64_t columns, int64_t depth, Finish finish,
                          hipStream_t stream) {
    const Product<E> p{a, b, rows, columns, depth};
    const bool large = tiles_of(rows, columns, 128) >= kFew;
    const dim3 grid(tiles_of(rows, columns, large ? 128 : 64));
    if (large) product_kernel<128, along_a, along_b><<<grid, kThreads<E>, 0, stream>>>(p, c, finish);
    if (!large) product_kernel<64, along_a, along_b><<<grid, kThreads<E>, 0, stream>>>(p, c, finish);
    return hipGetLastError();
}

constexpr int kRowThreads = 256;
constexpr int kMostItems = 2048;  // of a set
constexpr int kQueries = 8;       // of a block, which share a set of few items

struct Bias {
    const T* bias;
    __device__ float operator()(float sum, int64_t column) const {
        return bias == nullptr ? sum : sum + static_cast<float>(bias[column]);
    }
};

struct Sizes {
    int64_t sets, items, queries, features, width;
};

// Its error is that of numbers near one, a rounding of float32, which is as little of a sum of many.
__device__ __forceinline__ float quick_tanh(float x) { return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f); }

// A query's scores of four items, or of those that are left, in every lane; lane by lane along the width.
template <int Items>
__device__ __forceinline__ void score_items(const float* of_support, const float* of_query, const T* score_weight,
                                            float* scores, int64_t width) {
    float score[Items] = {};
    for (int64_t i = threadIdx.x % warpSize; i < width; i += warpSize) {
        const float weight = static_cast<float>(score_weight[i]), of_one = of_query[i];
#pragma unroll
        for (int k = 0; k < Items; ++k) score[k] += weight * quick_tanh(of_support[k * width + i] + of_one);
    }
#pragma unroll
    for (int k = 0; k < Items; ++k) {
        for (int distance = warpSize / 2; distance > 0; distance /= 2) score[k] += __shfl_xor(score[k], distance);
        scores[k] = score[k];
    }
}

// A wave turns a query's scores into weights that are not divided by their sum yet, which it returns.
__device__ float exponentiate(float* scores, int64_t items) {
    const int lane = threadIdx.x % warpSize;
    float largest = scores[0], total = 0.0f;
    for (int64_t k = lane; k < items; k += warpSize) largest = fmaxf(largest, scores[k]);
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        largest = fmaxf(largest, __shfl_xor(largest, distance));
    }
    for (int64_t k = lane; k < items; k += warpSize) {
        scores[k] = expf(scores[k] - largest);
        total += scores[k];
    }
    for (int distance = warpSize / 2; distance > 0; distance /= 2) total += __shfl_xor(total, distance);
    return total;
}

// A block answers `Queries` queries about one set: a wave for each, or all waves for a single one. What it reads of the
// set's items and of the weight serves four items of a query, and all queries.
template <int Queries>
__global__ void __launch_bounds__(kRowThreads)
    attend_kernel(const T* support, const T* score_weight, const float* of_support, const float* of_query, T* y,
                  Sizes sizes) {
    constexpr int kRoom = kMostItems / Queries;
    __shared__ float scores[Queries][kRoom], totals[Queries];
    const int64_t groups = (sizes.queries + Queries - 1) / Queries;
    const int64_t set = blockIdx.x / groups, episode = set / sizes.sets;  // of all episodes
    const int64_t begin = blockIdx.x % groups * Queries, left = sizes.queries - begin;
    const int count = static_cast<int>(left < Queries ? left : Queries);
    const int wave = threadIdx.x / warpSize, waves = kRowThreads / warpSize, width = sizes.width;
    const int shares = waves > Queries ? waves / Queries : 1;  // waves of a query
    const float* items_of_set = of_support + set * sizes.items * width;
    for (int q = wave / shares; q < count; q += waves / shares) {
        const float* of_one = of_query + (episode * sizes.queries + begin + q) * width;
        for (int64_t k = wave % shares * 4; k < sizes.items; k += shares * 4) {
            const float* from = items_of_set + k * width;
            const int64_t rest = sizes.items - k;
            if (rest >= 4) {
                score_items<4>(from, of_one, score_weight, &scores[q][k], width);
            } else {
                for (int64_t i = 0; i < rest; ++i) {
                    score_items<1>(from + i * width, of_one, score_weight, &scores[q][k + i], width);
                }
            }
        }
    }
    __syncthreads();
    for (int q = wave; q < count; q += waves) totals[q] = exponentiate(scores[q], sizes.items);
    __syncthreads();
    const T* items = support + set * sizes.items * sizes.features;
    for (int64_t d = threadIdx.x; d < sizes.features; d += kRowThreads) {
        float sums[Queries] = {};
        for (int64_t k = 0; k < sizes.items; ++k) {
            const float value = static_cast<float>(items[k * sizes.features + d]);
#pragma unroll
            for (int q = 0; q < Queries; ++q) sums[q] += scores[q][k] * value;
        }
#pragma unroll
        for (int q = 0; q < Queries; ++q) {
            if (q >= count) break;
            const int64_t asked = episode * sizes.queries + begin + q;
            y[(asked * sizes.sets + set % sizes.sets) * sizes.features + d] = static_cast<T>(sums[q] / totals[q]);
        }
    }
}

static hipError_t attend(const T* support, const T* score_weight, const float* of_support, const float* of_query, T* y,
                         int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const int64_t sets = batch * sizes.sets, together = parts_of(sizes.queries, kQueries);
    // Fewer blocks than these leave multiprocessors idle, which costs more than to read a set again.
    if (sizes.items * kQueries <= kMostItems && sets * together >= 2 * kFew) {
        attend_kernel<kQueries><<<sets * together, kRowThreads, 0, stream>>>(support, score_weight, of_support,
                                                                              of_query, y, sizes);
    } else {
        attend_kernel<1><<<sets * sizes.queries, kRowThreads, 0, stream>>>(support, score_weight, of_support, of_query,
                                                                           y, sizes);
    }
    return hipGetLastError();
}

extern "C" size_t item_query_attention_workspace(int64_t B, int64_t N, int64_t K, int64_t Q, int64_t, int64_t A) {
    return B * (N * K + Q) * A * sizeof(float);
}

extern "C" hipError_t item_query_attention(const T* support, const T* query, const T* support_weight,
                                           const T* query_weight, const T* bias, const T* score_weight, T* y, int64_t B,
                                           int64_t N, int64_t K, int64_t Q, int64_t D, int64_t A, void* workspace,
                                           hipStream_t stream) {
    float* of_support = static_cast<float*>(workspace);
    float* of_query = of_support + B * N * K * A;
    const Matrix<T> items(support, D), queries(query, D), of_items(support_weight, D), of_queries(query_weight, D);
    return std::max({  // in this order; success is 0
        product<true, true>(items, of_items, of_support, B * N * K, A, D, Bias{}, stream),
        product<true, true>(queries, of_queries, of_query, B * Q, A, D, Bias{bias}, stream),
        attend(support, score_weight, of_support, of_query, y, B, Sizes{N, K, Q, D, A}, stream)});
}
