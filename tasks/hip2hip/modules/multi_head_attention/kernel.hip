// Multi-head attention in five launches: the projections of query, key and value in float32 scratch memory, the key's
// transposed; then a block for eight queries of a head, which takes 256 keys a round and keeps what the rounds so far
// add up to, scaled to the largest score so far; then the output projection.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;  // also the keys of a round; no head has more features
constexpr int kQueries = 8;    // that a block answers together, so that keys and values are read once for all

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

// Scores of a round become weights, not divided by their sum; a wave for each query.
__device__ void weigh(Round& round) {
    const int lane = threadIdx.x % warpSize, waves = kThreads / warpSize;
    for (int q = threadIdx.x / warpSize; q < kQueries; q += waves) {
        const float before = round.largest[q];
        float largest = before, sum = 0.0f;
        for (int s = lane; s < kThreads; s += warpSize) largest = fmaxf(largest, round.weights[q][s]);
        for (int distance = warpSize / 2; distance > 0; distance /= 2) {
            largest = fmaxf(largest, __shfl_xor(largest, distance));
        }
        for (int s = lane; s < kThreads; s += warpSize) {
            round.weights[q][s] = expf(round.weights[q][s] - largest);
            sum += round.weights[q][s];
        }
        for (int distance = warpSize / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance);
        if (lane == 0) {
            round.shrink[q] = expf(before - largest);
            round.total[q] = round.total[q] * round.shrink[q] + sum;
            round.largest[q] = largest;
        }
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

extern "C" size_t multi_head_attention_workspace(int64_t B, int64_t L, int64_t S, int64_t H, int64_t D) {
    return 2 * B * (L + S) * H * D * sizeof(float);
}

static hipError_t attend(const float* queries, const float* keys, const float* values, const bool* mask, float* context,
                         int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const int64_t tiles = (sizes.queries + kQueries - 1) / kQueries;
    const unsigned blocks = static_cast<unsigned>(batch * sizes.heads * tiles);
    attend_kernel<<<blocks, kThreads, 0, stream>>>(queries, keys, values, mask, context, sizes);
    return hipGetLastError();
}

extern "C" hipError_t multi_head_attention(const T* query, const T* key, const T* value, const bool* mask,
                                           const T* query_weight, const T* query_bias, const T* key_weight,
                                           const T* value_weight, const T* value_bias, const T* output_weight,
                                           const T* output_bias, T* y, int64_t B, int64_t L, int64_t S, int64_t H,
                                           int64_t D, void* workspace, hipStream_t stream) {
    const int64_t width = H * D;
    float* queries = static_cast<float*>(workspace);
    float* keys = queries + B * L * width;
    float* values = keys + B * S * width;
    float* context = values + B * S * width;
    const Matrices<const T> transposed{key, S * width, 1, width};
    const hipError_t outcomes[] = {
        linear(query, query_weight, query_bias, queries, B * L, width, width, Identity(), stream),
        product(Matrices<const T>{key_weight, 0, width, 1}, transposed, Matrices<float>{keys, S * width, S, 1}, B,
                width, S, width, Plain(), stream),
        linear(value, value_weight, value_bias, values, B * S, width, width, Identity(), stream),
        attend(queries, keys, values, mask, context, B, Sizes{L, S, H, D}, stream),
        linear(context, output_weight, output_bias, y, B * L, width, width, Identity(), stream),
    };
    for (const hipError_t outcome : outcomes) {
        if (outcome != hipSuccess) return outcome;
    }
    return hipSuccess;
}
