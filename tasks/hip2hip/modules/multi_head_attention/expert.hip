// Multi-head attention. Query and key are projected and rounded to the dtype, values are left turned, so that products
// run along the keys. With 16 bits a block answers 64 queries of a head on chip (Dao et al., 2022), while the next keys
// are on their way. float32 scores lie in scratch memory, their exponentials in their place, and a last product gathers
// the values.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>
#include <algorithm>
#include <type_traits>

static int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

template <typename E>
constexpr int kPack = 16 / sizeof(E);  // elements of a load
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kSlices = 2;
#else
constexpr int kSlices = 1;  // so that the 64 KiB of a CDNA compute unit's LDS hold two blocks
#endif

// Matrix z begins at z / heads * batch + z % heads * head; element (line, k) lies at line * stride + k.
template <typename E>
struct Matrix {
    E* data;
    int64_t batch, stride, heads = 1, head = 0;
    __device__ __forceinline__ E* at(int64_t z) const { return data + z / heads * batch + z % heads * head; }
    // Bytes that every line's address is a multiple of, at most 16.
    int aligned() const {
        const uintptr_t all = reinterpret_cast<uintptr_t>(data) | (batch | stride | head) * sizeof(E);
        int bytes = 16;
        while (all % bytes != 0) bytes /= 2;
        return bytes;
    }
};

template <typename E>
struct Product {
    Matrix<const E> a, b;
    int64_t rows, columns, depth;
    int aligned_a, aligned_b;
};

using Words = matrix::Pack<4>;  // what one load brings; compilers keep 16-bit elements apart
template <int Count>
__device__ __forceinline__ void load_words(Words& words, const void* from) {
#pragma unroll
    for (int i = 0; i < 4; i += Count) {
        using Piece = matrix::Pack<Count>;
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
    E elements[kPack<E>];
#pragma unroll
    for (int i = 0; i < kPack<E>; ++i) elements[i] = i < length ? from[i] : E(0.0f);
    __builtin_memcpy(&words, elements, sizeof words);
}

// A thread's packs, on their way in registers, of Lines × Length elements that Threads threads move.
template <int Lines, int Length, int Threads, typename E>
struct Underway {
    static constexpr int V = kPack<E>, kAcross = Length / V, kCount = (Lines * kAcross + Threads - 1) / Threads;
    Words packs[kCount];
    // `lines` are to be had, `length` elements of each; the rest is zero.
    __device__ __forceinline__ void fetch(const E* from, int64_t stride, int64_t lines, int64_t length, int aligned) {
        const int count = static_cast<int>(length < Length ? length : Length);
#pragma unroll
        for (int p = 0; p < kCount; ++p) {
            const int at = static_cast<int>(threadIdx.x) + p * Threads, line = at / kAcross, column = at % kAcross * V;
            const bool inside = line < lines && (kCount * Threads == Lines * kAcross || line < Lines);
            load_pack(packs[p], from + line * stride + column, inside ? count - column : 0, aligned);
        }
    }
    template <typename Slice>
    __device__ __forceinline__ void keep(Slice& slice) const {
#pragma unroll
        for (int p = 0; p < kCount; ++p) {
            const int at = static_cast<int>(threadIdx.x) + p * Threads, line = at / kAcross, column = at % kAcross * V;
            if (kCount * Threads != Lines * kAcross && line >= Lines) break;
            if constexpr (sizeof(slice.value[0][0]) == 2) {
                *reinterpret_cast<Words*>(&slice.value[line][column]) = packs[p];
            } else {
                E elements[V];
                __builtin_memcpy(elements, &packs[p], sizeof packs[p]);
#pragma unroll
                for (int i = 0; i < V; ++i) slice.set(line, column + i, static_cast<float>(elements[i]));
            }
        }
    }
};

// A slice of both operands is multiplied in shared memory while the next is on its way in registers.
template <typename Sums, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2) staged_kernel(Product<E> p, Matrix<C> c, Finish finish) {
    __shared__ Slices<Sums> slices[kSlices];
    const unsigned down = (p.rows + Sums::kTile - 1) / Sums::kTile;
    const int64_t z = blockIdx.x / down, side = int64_t{blockIdx.y} * Sums::kTile;
    const int64_t top = int64_t{blockIdx.x % down} * Sums::kTile;
    Sums sums;
    const E *a = p.a.at(z) + top * p.a.stride, *b = p.b.at(z) + side * p.b.stride;
    Underway<Sums::kTile, Sums::kDepth, kProductThreads, E> next_a, next_b;
    int now = 0;
    for (int64_t k = -Sums::kDepth; k < p.depth; k += Sums::kDepth) {
        const int64_t next = k + Sums::kDepth, rest = p.depth - next;
        if (rest > 0) {
            next_a.fetch(a + next, p.a.stride, p.rows - top, rest, p.aligned_a);
            next_b.fetch(b + next, p.b.stride, p.columns - side, rest, p.aligned_b);
        }
        if (k >= 0) sums.add(slices[now].left, slices[now].right);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (rest > 0) next_a.keep(slices[now].left), next_b.keep(slices[now].right);
        __syncthreads();
    }
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < p.rows && n < p.columns) c.at(z)[m * c.stride + n] = static_cast<C>(finish(sum, z, m, n));
    });
}

// c[z] = finish(a[z] × b[z]) for z below `batch`.
template <typename E, typename C, typename Finish>
static hipError_t multiply(Matrix<const E> a, Matrix<const E> b, Matrix<C> c, int64_t batch, int64_t rows,
                           int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    const Product<E> p{a, b, rows, columns, depth, a.aligned(), b.aligned()};
    return with_sums<E>(batch, rows, columns, [&](auto sums, dim3 grid) {
        const dim3 tiles(static_cast<unsigned>(grid.x * batch), grid.y);
        staged_kernel<typename decltype(sums)::type><<<tiles, kProductThreads, 0, stream>>>(p, c, finish);
    });
}

constexpr int kRowThreads = 256;
constexpr int kQueries = 64;  // of a block: 16 of each wave
constexpr int kThreads = kSlices == 2 ? 128 : 256;  // four waves
constexpr bool kSameLanes = kSlices == 2;  // a lane has the same elements of an accumulator as of a left operand

// A projection's bias by column or by row, or division by the sum of a row's weights; neither for scores.
struct Finish {
    const T *of_column = nullptr, *of_row = nullptr;
    const float* totals = nullptr;
    int64_t rows = 0;
    __device__ float operator()(float sum, int64_t z, int64_t m, int64_t n) const {
        if (of_column != nullptr) sum += static_cast<float>(of_column[n]);
        if (of_row != nullptr) sum += static_cast<float>(of_row[m]);
        return totals == nullptr ? sum : sum / totals[z * rows + m];
    }
};

// Operands of attention, batch z being sample z / heads and head z % heads. Lines of `value` are features.
template <typename E>
struct Attention {
    Matrix<const E> query, key, value;
    Matrix<E> context;
    const bool* mask;
    int64_t heads, queries, keys, features;
    float scale;

    __device__ __forceinline__ float score(float sum, int64_t z, int64_t query, int64_t key) const {
        return mask == nullptr || mask[(z / heads * queries + query) * keys + key] ? sum * scale : -1e9f;
    }
};

// Scores become weights, exp(score - the largest), whose sum goes to `totals`.
__global__ void weigh_kernel(Attention<float> all, float* scores, float* totals) {
    const int64_t z = blockIdx.x / all.queries, query = blockIdx.x % all.queries;
    float* row = scores + blockIdx.x * all.keys;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t s = threadIdx.x; s < all.keys; s += kRowThreads) {
        row[s] = all.score(row[s], z, query, s);
        largest = fmaxf(largest, row[s]);
    }
    largest = block_max(largest);
    for (int64_t s = threadIdx.x; s < all.keys; s += kRowThreads) {
        row[s] = expf(row[s] - largest);
        total += row[s];
    }
    totals[blockIdx.x] = block_sum(total);  // which every thread has
}

// Keys and values of a round in shared memory: lines of features, and lines of keys.
template <int Features, typename E>
struct Tile {
    static constexpr int kKeys = Features > 128 ? 16 : Features > 64 ? 32 : 64;
    struct {
        alignas(16) E value[kKeys][Features + 8];
    } keys;
    struct {
        alignas(16) E value[Features][kKeys + 8];
    } values;
};

// Weights as left operands: NVIDIA's lanes have the same elements of both; elsewhere they go through shared memory.
template <int Tiles, typename E>
__device__ __forceinline__ void as_left(matrix::FragmentA<E> (&left)[Tiles], matrix::Accumulator (&weights)[Tiles],
                                        E* shared, int stride) {
    if constexpr (kSameLanes) {
#pragma unroll
        for (int i = 0; i < Tiles * left[0].words; ++i) {
            const float* two = weights[i / left[0].words].value + i % left[0].words * 2;
            const E pair[2] = {static_cast<E>(two[0]), static_cast<E>(two[1])};
            __builtin_memcpy(&left[i / left[0].words].word[i % left[0].words], pair, sizeof pair);
        }
    } else {
        for (int j = 0; j < Tiles; ++j) matrix::store(weights[j], shared + 16 * j, stride);
        __syncthreads();
        for (int j = 0; j < Tiles; ++j) matrix::load_shared<matrix::row_major>(left[j], shared + 16 * j, stride);
    }
}

// What a wave has of 16 queries: sums of values, scaled to the largest score so far.
template <int Features, typename E>
struct Answers {
    static constexpr int kDeep = Features / 16, kKeys = Tile<Features, E>::kKeys, kTiles = kKeys / 16;
    matrix::FragmentA<E> query[kDeep];
    matrix::Accumulator sums[kDeep];
    matrix::RowValues largest, totals;

    __device__ __forceinline__ void begin(const E* from, int64_t stride, int64_t lines, int64_t features) {
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::load<matrix::row_major>(query[f], from + 16 * f, stride, lines, features - 16 * f);
        }
        for (int i = 0; i < matrix::kRows; ++i) largest.value[i] = -INFINITY, totals.value[i] = 0.0f;
    }
    __device__ __forceinline__ void end(E* to, int64_t stride, int64_t lines, int64_t features) {
        matrix::combine_lanes(totals, [](float a, float b) { return a + b; });
        for (float& total : totals.value) total = 1.0f / total;
        times(totals);
#pragma unroll
        for (int f = 0; f < kDeep; ++f) matrix::store(sums[f], to + 16 * f, stride, lines, features - 16 * f);
    }
    // Bit i: whether the mask admits the lane's score i of the keys from `start`.
    __device__ __forceinline__ uint32_t bits(const bool* mask, int start, int keys, int64_t lines) const {
        uint32_t seen = 0xffffffffu;
        if (mask == nullptr) return seen;
#pragma unroll
        for (int i = 0; i < kTiles * matrix::kSums; ++i) {
            const int row = matrix::row_of(i % matrix::kSums);
            const int key = start + i / matrix::kSums * 16 + matrix::column_of(i % matrix::kSums);
            if (row < lines && key < keys && !mask[int64_t{row} * keys + key]) seen &= ~(1u << i);
        }
        return seen;
    }
    // Scores of a tile become weights; bit i of `seen`: whether the mask admits the lane's score i; `left`: keys.
    __device__ __forceinline__ void weigh(const Tile<Features, E>& tile, matrix::Accumulator (&scores)[kTiles],
                                          uint32_t seen, int left, float scale) {
        matrix::RowValues now = largest, shrink;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &tile.keys.value[16 * j][16 * f], Features + 8);
                matrix::multiply_accumulate(scores[j], query[f], part);
            }
            int bit = j * matrix::kSums;
            matrix::for_each(scores[j], now, [&](int, int column, float& score, float& most) {
                score = seen >> bit++ & 1 ? score * scale : -1e9f;
                if (left < kKeys && 16 * j + column >= left) score = -INFINITY;
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
        for (int i = 0; i < matrix::kRows; ++i) {
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            totals.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], totals, [](int, int, float& weight, float& total) { total += weight; });
        }
        times(shrink);
    }
    __device__ __forceinline__ void times(matrix::RowValues& factors) {
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::for_each(sums[f], factors, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
    }
    using Weights = matrix::FragmentA<E>[kTiles];
    __device__ __forceinline__ void gather(const Tile<Features, E>& tile, const Weights& weights) {
#pragma unroll
        for (int i = 0; i < kTiles * kDeep; ++i) {
            const E* from = &tile.values.value[i % kDeep * 16][i / kDeep * 16];
            matrix::FragmentB<E> part;
            matrix::load_shared<matrix::column_major>(part, from, kKeys + 8);
            matrix::multiply_accumulate(sums[i % kDeep], weights[i / kDeep], part);
        }
    }
};

// While a round's keys are multiplied in shared memory, the next are on their way in registers, and bits of the mask.
template <int Features, typename E>
__global__ void __launch_bounds__(kThreads, Features > 64 ? 2 : 3)
    attend_kernel(Attention<E> all, int aligned_key, int aligned_value) {
    constexpr int kKeys = Tile<Features, E>::kKeys;
    __shared__ Tile<Features, E> tiles[kSlices];
    __shared__ alignas(16) E shared[kSameLanes ? 1 : kQueries][kKeys + 8];
    const int64_t groups = (all.queries + kQueries - 1) / kQueries, z = blockIdx.x / groups;
    // The wave's first query. Where 256 threads are eight waves, as on RDNA, two of them do the same.
    const int top = static_cast<int>(threadIdx.x) / matrix::kLanes % 4 * 16, S = static_cast<int>(all.keys);
    const int64_t begin = blockIdx.x % groups * kQueries + top, lines = all.queries - begin;
    const E *key = all.key.at(z), *value = all.value.at(z);
    const bool* mask = all.mask == nullptr ? nullptr : all.mask + (z / all.heads * all.queries + begin) * S;
    Answers<Features, E> mine;
    mine.begin(all.query.at(z) + begin * all.query.stride, all.query.stride, lines, all.features);
    Underway<kKeys, Features, kThreads, E> keys;
    Underway<Features, kKeys, kThreads, E> values;
    uint32_t seen = 0, next_seen = 0;
    int now = 0;
    for (int start = -kKeys; start < S; start += kKeys) {
        const int next = start + kKeys;
        if (next < S) {
            keys.fetch(key + next * all.key.stride, all.key.stride, S - next, all.features, aligned_key);
            values.fetch(value + next, all.value.stride, all.features, S - next, aligned_value);
            next_seen = mine.bits(mask, next, S, lines);
        }
        if (start >= 0) {
            matrix::Accumulator scores[kKeys / 16];
            matrix::FragmentA<E> weights[kKeys / 16];
            mine.weigh(tiles[now], scores, seen, S - start, all.scale);
            as_left(weights, scores, shared[kSameLanes ? 0 : top], kKeys + 8);
            mine.gather(tiles[now], weights);
        }
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices, seen = next_seen;
        if (next < S) keys.keep(tiles[now].keys), values.keep(tiles[now].values);
        __syncthreads();
    }
    mine.end(all.context.at(z) + begin * all.context.stride, all.context.stride, lines, all.features);
}

// The weighted sums of the values; float32 needs scratch memory for scores and totals.
template <typename E>
static hipError_t attend(const Attention<E>& all, int64_t batch, float* scores, hipStream_t stream) {
    const int64_t rows = batch * all.queries;
    if constexpr (sizeof(E) == 2) {
        const int64_t blocks = batch * parts_of(all.queries, kQueries);
        const auto launch = all.features <= 32    ? attend_kernel<32, E>
                            : all.features <= 64  ? attend_kernel<64, E>
                            : all.features <= 128 ? attend_kernel<128, E>
                                                  : attend_kernel<256, E>;
        launch<<<blocks, kThreads, 0, stream>>>(all, all.key.aligned(), all.value.aligned());
        return hipGetLastError();
    } else {
        float* totals = scores + rows * all.keys;
        const Matrix<float> pairs{scores, all.queries * all.keys, all.keys};
        const Matrix<const float> weights{scores, all.queries * all.keys, all.keys};
        return std::max({  // in this order; success is 0
            multiply(all.query, all.key, pairs, batch, all.queries, all.keys, all.features, Finish{}, stream),
            (weigh_kernel<<<rows, kRowThreads, 0, stream>>>(all, scores, totals), hipGetLastError()),
            multiply(weights, all.value, all.context, batch, all.queries, all.features, all.keys,
                     Finish{nullptr, nullptr, totals, all.queries}, stream)});
    }
}

// Elements of a buffer, to whole packs.
static int64_t whole(int64_t elements) { return parts_of(elements, 8) * 8; }

extern "C" size_t multi_head_attention_workspace(int64_t B, int64_t L, int64_t S, int64_t H, int64_t D) {
    const size_t scores = sizeof(T) == 2 ? 0 : B * H * L * (S + 1) * sizeof(float);
    return (2 * whole(B * L * H * D) + 2 * whole(B * S * H * D)) * sizeof(T) + scores;
}

extern "C" hipError_t multi_head_attention(const T* query, const T* key, const T* value, const bool* mask,
                                           const T* query_weight, const T* query_bias, const T* key_weight,
                                           const T* value_weight, const T* value_bias, const T* output_weight,
                                           const T* output_bias, T* y, int64_t B, int64_t L, int64_t S, int64_t H,
                                           int64_t D, void* workspace, hipStream_t stream) {
    const int64_t E = H * D, queries = B * L, keys = B * S;
    T *q = static_cast<T*>(workspace), *k = q + whole(queries * E), *v = k + whole(keys * E);
    T* context = v + whole(keys * E);
    float* scores = reinterpret_cast<float*>(context + whole(queries * E));
    using Lines = Matrix<const T>;
    const Attention<T> all{Lines{q, L * E, E, H, D}, Lines{k, S * E, E, H, D}, Lines{v, S, keys, H, D * keys},
                           Matrix<T>{context, L * E, E, H, D}, mask, H, L, S, D,
                           1.0f / sqrtf(static_cast<float>(D))};
    const auto project = [&](const T* a, const T* b, T* to, int64_t rows, int64_t columns, Finish finish) {
        return multiply(Lines{a, 0, E}, Lines{b, 0, E}, Matrix<T>{to, 0, columns}, 1, rows, columns, E, finish, stream);
    };
    return std::max({  // in this order; success is 0
        project(query, query_weight, q, queries, E, Finish{query_bias}),
        project(key, key_weight, k, keys, E, Finish{}),
        project(value_weight, value, v, E, keys, Finish{nullptr, value_bias}),
        attend(all, B * H, scores, stream),
        project(context, output_weight, y, queries, E, Finish{output_bias})});
}
