// Multi-head attention in five launches: the projections of query, key and value in scratch memory; attention; then the
// output projection. With 16 bits, a block answers 64 queries of a head with matrix units, an online softmax over tiles
// of 32 keys. In float32 it answers eight and takes 256 keys a round, which are transposed. Both keep what the rounds
// so far add up to, scaled to the largest score so far.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;  // also the keys of a round; no head has more features
constexpr int kQueries = 8;    // that a block answers together, so that keys and values are read once for all
constexpr int kShare = kThreads / kQueries;
constexpr int kTileThreads = 128, kTileQueries = 64, kTileKeys = 32;  // of a block with matrix units

struct Sizes {
    int64_t queries, keys, heads, features;
    __host__ __device__ int64_t width() const { return heads * features; }
};

// What a block has in shared memory.
struct Round {
    float query[kThreads][kQueries];    // by feature
    float weights[kQueries][kThreads];  // by key: scores first
    float largest[kQueries], total[kQueries], shrink[kQueries];
};

// One key's scores, scaled; `keys`: (features, keys) of this head, so that threads side by side read keys side by side.
__device__ void score_key(Round& round, const float* keys, const bool* mask, int64_t key, int queries,
                          const Sizes& sizes) {
    float scores[kQueries] = {};
    if (key < sizes.keys) {
        for (int64_t d = 0; d < sizes.features; ++d) {
            const float value = keys[d * sizes.keys + key];
#pragma unroll
            for (int q = 0; q < kQueries; ++q) scores[q] += round.query[d][q] * value;
        }
    }
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        const bool hidden = mask != nullptr && q < queries && key < sizes.keys && !mask[q * sizes.keys + key];
        round.weights[q][threadIdx.x] = key >= sizes.keys ? -INFINITY : hidden ? -1e9f : scores[q];
    }
}

// Scores of a round become weights, not divided by their sum; kShare threads of one wave for each query.
__device__ void weigh(Round& round) {
    const int q = threadIdx.x / kShare, lane = threadIdx.x % kShare;
    const float before = round.largest[q];
    float largest = before, sum = 0.0f;
    for (int s = lane; s < kThreads; s += kShare) largest = fmaxf(largest, round.weights[q][s]);
    for (int distance = kShare / 2; distance > 0; distance /= 2) {
        largest = fmaxf(largest, __shfl_xor(largest, distance));
    }
    for (int s = lane; s < kThreads; s += kShare) {
        round.weights[q][s] = expf(round.weights[q][s] - largest);
        sum += round.weights[q][s];
    }
    for (int distance = kShare / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance);
    if (lane == 0) {
        round.shrink[q] = expf(before - largest);
        round.total[q] = round.total[q] * round.shrink[q] + sum;
        round.largest[q] = largest;
    }
}

// Blocks count (batch, heads, groups of queries); query and context: (batch, queries, heads, features). Groups of
// threads, a thread a feature, share the keys of a round; their parts are added up in the order of the groups.
__global__ void attend_kernel(const float* query, const float* keys, const float* values, const bool* mask,
                              float* context, Sizes sizes) {
    __shared__ Round round;
    const int64_t tiles = (sizes.queries + kQueries - 1) / kQueries, head = blockIdx.x / tiles % sizes.heads;
    const int64_t sample = blockIdx.x / tiles / sizes.heads, first = blockIdx.x % tiles * kQueries;
    const int64_t row = sample * sizes.queries + first, at = row * sizes.width() + head * sizes.features;
    const int queries = static_cast<int>(sizes.queries - first < kQueries ? sizes.queries - first : kQueries);
    const int features = static_cast<int>(sizes.features), groups = kThreads / features;
    const int group = threadIdx.x / features, d = threadIdx.x % features;
    const float scale = 1.0f / sqrtf(static_cast<float>(features));
    for (int i = threadIdx.x; i < features * kQueries; i += kThreads) {
        const int q = i / features, of = i % features;
        round.query[of][q] = q < queries ? query[at + q * sizes.width() + of] * scale : 0.0f;
    }
    if (threadIdx.x < kQueries) {
        round.largest[threadIdx.x] = -INFINITY;
        round.total[threadIdx.x] = 0.0f;
    }
    const float* head_keys = keys + (sample * sizes.heads + head) * sizes.features * sizes.keys;
    const float* head_values = values + sample * sizes.keys * sizes.width() + head * sizes.features;
    const bool* row_mask = mask == nullptr ? nullptr : mask + row * sizes.keys;
    float sums[kQueries] = {};
    for (int64_t start = 0; start < sizes.keys; start += kThreads) {
        __syncthreads();
        score_key(round, head_keys, row_mask, start + threadIdx.x, queries, sizes);
        __syncthreads();
        weigh(round);
        __syncthreads();
        const int64_t count = sizes.keys - start < kThreads ? sizes.keys - start : kThreads;
#pragma unroll
        for (int q = 0; q < kQueries; ++q) sums[q] *= round.shrink[q];
        for (int64_t s = group; s < count && group < groups; s += groups) {
            const float value = head_values[(start + s) * sizes.width() + d];
#pragma unroll
            for (int q = 0; q < kQueries; ++q) sums[q] += round.weights[q][s] * value;
        }
    }
    __syncthreads();
    for (int q = 0; q < kQueries; ++q) round.weights[q][threadIdx.x] = sums[q];
    __syncthreads();
    for (int i = threadIdx.x; i < queries * features; i += kThreads) {
        const int q = i / features, of = i % features;
        float sum = 0.0f;
        for (int other = 0; other < groups; ++other) sum += round.weights[q][other * features + of];
        context[at + q * sizes.width() + of] = sum / round.total[q];
    }
}

// What a block with matrix units has in shared memory.
template <int Features, typename E>
struct Tiles {
    static constexpr int kStride = Features + 8;
    alignas(16) E keys[kTileKeys][kStride];
    alignas(16) E values[kTileKeys][kStride];
    alignas(16) E weights[kTileQueries][kTileKeys + 8];
};

// A tile of keys or values, which begins at `from`; zeros after the last of `lines` and of `features`.
template <int Features, typename E>
__device__ void stage(E (&to)[kTileKeys][Features + 8], const E* from, int64_t stride, int64_t lines,
                      int64_t features) {
    for (int i = threadIdx.x; i < kTileKeys * Features; i += kTileThreads) {
        const int line = i / Features, d = i % Features;
        to[line][d] = line < lines && d < features ? from[line * stride + d] : static_cast<E>(0.0f);
    }
}

// What a wave has of 16 queries.
template <int Features, typename E>
struct Answers {
    static constexpr int kDeep = Features / 16;
    matrix::FragmentA<E> query[kDeep];
    matrix::Accumulator sums[kDeep];
    matrix::RowValues largest, total;

    __device__ void begin(const E* from, int64_t rows, const Sizes& sizes) {
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::load<matrix::row_major>(query[f], from + 16 * f, sizes.width(), rows, sizes.features - 16 * f);
        }
        for (int i = 0; i < matrix::kRows; ++i) {
            largest.value[i] = -INFINITY;
            total.value[i] = 0.0f;
        }
    }
    // Weights of 32 keys to `weights`, rows of this wave.
    __device__ void weigh(const Tiles<Features, E>& tiles, E* weights, const bool* mask, int64_t rows,
                          const Sizes& sizes, int64_t left) {
        const float scale = 1.0f / sqrtf(static_cast<float>(sizes.features));
        matrix::Accumulator scores[kTileKeys / 16];
        matrix::RowValues now = largest, shrink;
#pragma unroll
        for (int j = 0; j < kTileKeys / 16; ++j) {
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &tiles.keys[16 * j][16 * f], tiles.kStride);
                matrix::multiply_accumulate(scores[j], query[f], part);
            }
            matrix::for_each(scores[j], now, [&](int row, int column, float& score, float& most) {
                const int key = 16 * j + column;
                const bool hidden = mask != nullptr && row < rows && key < left && !mask[row * sizes.keys + key];
                score = key >= left ? -INFINITY : hidden ? -1e9f : score * scale;
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
        for (int i = 0; i < matrix::kRows; ++i) {
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            total.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTileKeys / 16; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], total, [](int, int, float& weight, float& sum) { sum += weight; });
            matrix::store(scores[j], weights + 16 * j, kTileKeys + 8);
        }
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::for_each(sums[f], shrink, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
    }
    __device__ void gather(const Tiles<Features, E>& tiles, const E* weights) {
#pragma unroll
        for (int j = 0; j < kTileKeys / 16; ++j) {
            matrix::FragmentA<E> weight;
            matrix::load_shared<matrix::row_major>(weight, weights + 16 * j, kTileKeys + 8);
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::row_major>(part, &tiles.values[16 * j][16 * f], tiles.kStride);
                matrix::multiply_accumulate(sums[f], weight, part);
            }
        }
    }
    __device__ void store(E* to, int64_t rows, const Sizes& sizes) {
        matrix::combine_lanes(total, [](float a, float b) { return a + b; });
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::for_each(sums[f], total, [](int, int, float& sum, float& all) { sum /= all; });
            matrix::store(sums[f], to + 16 * f, sizes.width(), rows, sizes.features - 16 * f);
        }
    }
};

// Blocks count (batch, heads, groups of 64 queries); all but the mask is (batch, queries or keys, heads, features).
template <int Features, typename E>
__global__ void __launch_bounds__(kTileThreads)
    attend_tiles_kernel(const E* query, const E* keys, const E* values, const bool* mask, E* context, Sizes sizes) {
    constexpr int kOwn = kTileQueries / 16 * matrix::kLanes / kTileThreads;  // sixteens of queries of each wave
    __shared__ Tiles<Features, E> tiles;
    const int64_t groups = (sizes.queries + kTileQueries - 1) / kTileQueries, head = blockIdx.x / groups % sizes.heads;
    const int64_t sample = blockIdx.x / groups / sizes.heads, width = sizes.width();
    const int top = threadIdx.x / matrix::kLanes * kOwn * 16;  // of the wave
    const int64_t first = blockIdx.x % groups * kTileQueries + top, row = sample * sizes.queries + first;
    const int64_t at = row * width + head * sizes.features;
    keys += sample * sizes.keys * width + head * sizes.features;
    values += sample * sizes.keys * width + head * sizes.features;
    Answers<Features, E> answers[kOwn];
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
        answers[own].begin(query + at + own * 16 * width, sizes.queries - first - own * 16, sizes);
    }
    for (int64_t start = 0; start < sizes.keys; start += kTileKeys) {
        const int64_t left = sizes.keys - start;
        stage<Features>(tiles.keys, keys + start * width, width, left, sizes.features);
        stage<Features>(tiles.values, values + start * width, width, left, sizes.features);
        __syncthreads();
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
            const bool* seen = mask == nullptr ? nullptr : mask + (row + own * 16) * sizes.keys + start;
            answers[own].weigh(tiles, tiles.weights[top + own * 16], seen, sizes.queries - first - own * 16, sizes,
                               left);
        }
        __syncthreads();
#pragma unroll
        for (int own = 0; own < kOwn; ++own) answers[own].gather(tiles, tiles.weights[top + own * 16]);
        __syncthreads();
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
        answers[own].store(context + at + own * 16 * width, sizes.queries - first - own * 16, sizes);
    }
}

extern "C" size_t multi_head_attention_workspace(int64_t B, int64_t L, int64_t S, int64_t H, int64_t D) {
    return 2 * B * (L + S) * H * D * sizeof(T);
}

static hipError_t attend(const float* queries, const float* keys, const float* values, const bool* mask, float* context,
                         int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const int64_t tiles = (sizes.queries + kQueries - 1) / kQueries;
    const unsigned blocks = static_cast<unsigned>(batch * sizes.heads * tiles);
    attend_kernel<<<blocks, kThreads, 0, stream>>>(queries, keys, values, mask, context, sizes);
    return hipGetLastError();
}

template <typename E>
static hipError_t attend(const E* queries, const E* keys, const E* values, const bool* mask, E* context, int64_t batch,
                         const Sizes& sizes, hipStream_t stream) {
    const int64_t groups = (sizes.queries + kTileQueries - 1) / kTileQueries;
    const unsigned blocks = static_cast<unsigned>(batch * sizes.heads * groups);
    const auto launch = sizes.features <= 64    ? attend_tiles_kernel<64, E>
                        : sizes.features <= 128 ? attend_tiles_kernel<128, E>
                                                : attend_tiles_kernel<256, E>;
    launch<<<blocks, kTileThreads, 0, stream>>>(queries, keys, values, mask, context, sizes);
    return hipGetLastError();
}

extern "C" hipError_t multi_head_attention(const T* query, const T* key, const T* value, const bool* mask,
                                           const T* query_weight, const T* query_bias, const T* key_weight,
                                           const T* value_weight, const T* value_bias, const T* output_weight,
                                           const T* output_bias, T* y, int64_t B, int64_t L, int64_t S, int64_t H,
                                           int64_t D, void* workspace, hipStream_t stream) {
    const int64_t width = H * D;
    T* queries = static_cast<T*>(workspace);
    T* keys = queries + B * L * width;
    T* values = keys + B * S * width;
    T* context = values + B * S * width;
    const auto project_keys = [&] {
        if (sizeof(T) == 2) {
            return product(Matrices<const T>{key, 0, width, 1}, Matrices<const T>{key_weight, 0, 1, width},
                           Matrices<T>{keys, 0, width, 1}, 1, B * S, width, width, Plain(), stream);
        }
        return product(Matrices<const T>{key_weight, 0, width, 1}, Matrices<const T>{key, S * width, 1, width},
                       Matrices<T>{keys, S * width, S, 1}, B, width, S, width, Plain(), stream);
    };
    const hipError_t outcomes[] = {
        linear(query, query_weight, query_bias, queries, B * L, width, width, Identity(), stream),
        project_keys(),
        linear(value, value_weight, value_bias, values, B * S, width, width, Identity(), stream),
        attend(queries, keys, values, mask, context, B, Sizes{L, S, H, D}, stream),
        linear(context, output_weight, output_bias, y, B * L, width, width, Identity(), stream),
    };
    for (const hipError_t outcome : outcomes) {
        if (outcome != hipSuccess) return outcome;
    }
    return hipSuccess;
}
