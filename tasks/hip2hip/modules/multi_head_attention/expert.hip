// Multi-head attention. Query and key are projected and rounded to the dtype, values are left turned, so that products run
// along the keys. With 16 bits a block answers 64 queries of a head on chip (Dao et al., 2022): it keeps what tiles of
// keys add up to, scaled to the largest score so far. float32 scores lie in scratch memory, their exponentials in their
// place, and a last product gathers the values.
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

// Matrix z begins at z / heads * batch + z % heads * head; element (line, k) lies at line * stride + k. Lines are the rows
// of a or of the result, or the columns of b.
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

// What one load brings. As words, since compilers keep 16-bit elements apart.
struct alignas(16) Words {
    uint32_t word[4];
};

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

// A thread's part of the next slice: packs of lines that lie kStep apart.
template <typename Sums, typename E>
struct Staged {
    static constexpr int V = kPack<E>, kAcross = Sums::kDepth / V, kStep = kProductThreads / kAcross;
    static constexpr int kLoads = (Sums::kTile + kStep - 1) / kStep;
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines, aligned;

    __device__ __forceinline__ Staged(const Matrix<const E>& m, int aligned, int64_t z, int64_t top, int64_t all)
        : stride(m.stride), row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Sums::kTile ? all - top : Sums::kTile)), aligned(aligned) {
        from = m.at(z) + column + (top + row) * stride;
    }
    // `left`: how much of the depth is.
    __device__ __forceinline__ void fetch(int64_t left) {
        const int depth = left < Sums::kDepth ? static_cast<int>(left) : Sums::kDepth;
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            load_pack(packs[l], from + l * kStep * stride, row + l * kStep < lines ? depth - column : 0, aligned);
        }
        from += Sums::kDepth;
    }
    __device__ __forceinline__ void keep(typename Sums::Slice& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int line = row + l * kStep;
            if (kLoads * kStep > Sums::kTile && line >= Sums::kTile) break;
            if constexpr (std::is_same_v<std::decay_t<decltype(slice.value[0][0])>, E> && sizeof(E) == 2) {
                *reinterpret_cast<Words*>(&slice.value[line][column]) = packs[l];
            } else {
                E elements[V];
                __builtin_memcpy(elements, &packs[l], sizeof packs[l]);
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
    Staged<Sums, E> next_a(p.a, p.aligned_a, z, top, p.rows), next_b(p.b, p.aligned_b, z, side, p.columns);
    int now = 0;
    for (int64_t k = -Sums::kDepth; k < p.depth; k += Sums::kDepth) {
        const int64_t rest = p.depth - k - Sums::kDepth;
        if (rest > 0) next_a.fetch(rest), next_b.fetch(rest);
        if (k >= 0) sums.add(slices[now].left, slices[now].right);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (rest > 0) next_a.keep(slices[now].left), next_b.keep(slices[now].right);
        __syncthreads();
    }
    C* to = c.at(z);
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < p.rows && n < p.columns) to[m * c.stride + n] = static_cast<C>(finish(sum, z, m, n));
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
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kThreads = 128;
#else
constexpr int kThreads = 256;
#endif

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

// `count` lines of up to `Length` elements to rows of shared memory, zeros where there are fewer or shorter ones.
template <int Length, typename E>
__device__ __forceinline__ void stage(E (*to)[Length + 8], const E* from, int64_t stride, int count, int64_t lines,
                                      int64_t length, int aligned) {
    for (int i = threadIdx.x; i < count * (Length / 8); i += kThreads) {
        const int line = i / (Length / 8), column = i % (Length / 8) * 8;
        const int64_t left = line < lines ? length - column : 0;
        Words words;
        load_pack(words, from + line * stride + column, static_cast<int>(left < 8 ? left : 8), aligned);
        *reinterpret_cast<Words*>(&to[line][column]) = words;
    }
}

template <int Features, typename E>
__global__ void __launch_bounds__(kThreads) attend_kernel(Attention<E> all, int aligned_key, int aligned_value) {
    constexpr int kKeys = Features > 128 ? 32 : 64, kDeep = Features / 16, kTiles = kKeys / 16;
    __shared__ alignas(16) E keys[kKeys][Features + 8], values[Features][kKeys + 8], weights[kQueries][kKeys + 8];
    const int64_t groups = (all.queries + kQueries - 1) / kQueries, z = blockIdx.x / groups;
    const int64_t begin = blockIdx.x % groups * kQueries;
    // The wave's first query. Where 256 threads are eight waves, as on RDNA, two of them do the same.
    const int top = static_cast<int>(threadIdx.x) / matrix::kLanes % 4 * 16;
    const E *key = all.key.at(z), *value = all.value.at(z);
    matrix::FragmentA<E> query[kDeep];
    const E* asked = all.query.at(z) + (begin + top) * all.query.stride;
#pragma unroll
    for (int f = 0; f < kDeep; ++f) {
        matrix::load<matrix::row_major>(query[f], asked + 16 * f, all.query.stride, all.queries - begin - top,
                                        all.features - 16 * f);
    }
    matrix::Accumulator sums[kDeep];
    matrix::RowValues largest, totals;
#pragma unroll
    for (int i = 0; i < matrix::kRows; ++i) largest.value[i] = -INFINITY, totals.value[i] = 0.0f;
    for (int64_t start = 0; start < all.keys; start += kKeys) {
        __syncthreads();
        const int64_t left = all.keys - start;
        stage<Features>(keys, key + start * all.key.stride, all.key.stride, kKeys, left, all.features, aligned_key);
        stage<kKeys>(values, value + start, all.value.stride, Features, all.features, left, aligned_value);
        __syncthreads();
        matrix::Accumulator scores[kTiles];
        matrix::RowValues now = largest, shrink;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &keys[16 * j][16 * f], Features + 8);
                matrix::multiply_accumulate(scores[j], query[f], part);
            }
            matrix::for_each(scores[j], now, [&](int row, int column, float& score, float& most) {
                const int64_t line = begin + top + row, at = 16 * j + column;
                score = at >= left || line >= all.queries ? -INFINITY : all.score(score, z, line, start + at);
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
        for (int i = 0; i < matrix::kRows; ++i) {
            if (now.value[i] == -INFINITY) now.value[i] = 0.0f;  // of a row past the last
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            totals.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], totals, [](int, int, float& weight, float& total) { total += weight; });
            matrix::store(scores[j], &weights[top][16 * j], kKeys + 8);
        }
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::for_each(sums[f], shrink, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::FragmentA<E> weight;
            matrix::load_shared<matrix::row_major>(weight, &weights[top][16 * j], kKeys + 8);
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &values[16 * f][16 * j], kKeys + 8);
                matrix::multiply_accumulate(sums[f], weight, part);
            }
        }
    }
    matrix::combine_lanes(totals, [](float a, float b) { return a + b; });
    E* context = all.context.at(z) + (begin + top) * all.context.stride;
#pragma unroll
    for (int f = 0; f < kDeep; ++f) {
        matrix::for_each(sums[f], totals, [&](int row, int column, float& sum, float& total) {
            if (begin + top + row < all.queries && 16 * f + column < all.features) {
                context[row * all.context.stride + 16 * f + column] = static_cast<E>(sum / total);
            }
        });
    }
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
