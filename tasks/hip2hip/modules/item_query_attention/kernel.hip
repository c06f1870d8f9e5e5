// Additive attention over the items of support sets, in four launches: both projections in float32 scratch memory; their
// scores, a tile of 32 queries and 32 items a block; then a block for each query and set, for softmax and weighted sum.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kTile = 32;  // queries and items of a tile, and the part of the width that lies in shared memory
constexpr int kMostItems = 2048;

struct Sizes {
    int64_t sets, items, queries, features, width;
};

// Lines of a projection from `from`, zeros past the end of the width. After the last line the last is read again, whose
// scores are not stored.
__device__ void stage(float (&to)[kTile][kTile + 1], const float* from, int64_t lines, int64_t width, int64_t start) {
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
        const int64_t line = i / kTile < lines ? i / kTile : lines - 1, at = start + i % kTile;
        to[i / kTile][i % kTile] = at < width ? from[line * width + at] : 0.0f;
    }
}

// Scores of an episode's queries and of the items of its sets, a thread four of them: one item, queries eight apart.
template <typename E>
__global__ void score_kernel(const float* of_support, const float* of_query, const E* score_weight, float* scores,
                             Sizes sizes) {
    __shared__ float support[kTile][kTile + 1], query[kTile][kTile + 1], weights[kTile];
    const int64_t items = sizes.sets * sizes.items, episode = blockIdx.z;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * kTile, side = static_cast<int64_t>(blockIdx.y) * kTile;
    const float* from_support = of_support + (episode * items + side) * sizes.width;
    const float* from_query = of_query + (episode * sizes.queries + top) * sizes.width;
    const int item = threadIdx.x % kTile, first = threadIdx.x / kTile;
    float sums[4] = {};
    for (int64_t start = 0; start < sizes.width; start += kTile) {
        stage(support, from_support, items - side, sizes.width, start);
        stage(query, from_query, sizes.queries - top, sizes.width, start);
        if (threadIdx.x < kTile) {
            const int64_t at = start + threadIdx.x;
            weights[threadIdx.x] = at < sizes.width ? static_cast<float>(score_weight[at]) : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                sums[q] += weights[i] * tanhf(support[item][i] + query[first + 8 * q][i]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const int64_t of_episode = top + first + 8 * q;
        if (of_episode >= sizes.queries || side + item >= items) continue;
        scores[(episode * sizes.queries + of_episode) * items + side + item] = sums[q];
    }
}

// Scores become weights that are not divided by their sum yet, which every thread gets.
__device__ float exponentiate(const float* scores, float* weights, int64_t items) {
    float largest = scores[0];
    for (int64_t k = threadIdx.x; k < items; k += kThreads) largest = fmaxf(largest, scores[k]);
    largest = block_max(largest);
    float total = 0.0f;
    for (int64_t k = threadIdx.x; k < items; k += kThreads) {
        weights[k] = expf(scores[k] - largest);
        total += weights[k];
    }
    return block_sum(total);  // after which all weights can be read
}

template <typename E>
__global__ void gather_kernel(const E* support, const float* scores, E* y, Sizes sizes) {
    __shared__ float weights[kMostItems];
    const int64_t asked = blockIdx.x / sizes.sets;  // of the queries of all episodes
    const int64_t set = asked / sizes.queries * sizes.sets + blockIdx.x % sizes.sets;  // of the sets of all episodes
    const float total = exponentiate(scores + blockIdx.x * sizes.items, weights, sizes.items);
    const E* items = support + set * sizes.items * sizes.features;
    for (int64_t d = threadIdx.x; d < sizes.features; d += kThreads) {
        float sum = 0.0f;
        for (int64_t k = 0; k < sizes.items; ++k) {
            sum += weights[k] * static_cast<float>(items[k * sizes.features + d]);
        }
        y[blockIdx.x * sizes.features + d] = static_cast<E>(sum / total);
    }
}

extern "C" size_t item_query_attention_workspace(int64_t B, int64_t N, int64_t K, int64_t Q, int64_t, int64_t A) {
    return B * ((N * K + Q) * A + Q * N * K) * sizeof(float);
}

static hipError_t attend(const T* support, const T* score_weight, const float* of_support, const float* of_query,
                         float* scores, T* y, int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const int64_t items = sizes.sets * sizes.items;
    const dim3 tiles(static_cast<unsigned>((sizes.queries + kTile - 1) / kTile),
                     static_cast<unsigned>((items + kTile - 1) / kTile), static_cast<unsigned>(batch));
    score_kernel<<<tiles, kThreads, 0, stream>>>(of_support, of_query, score_weight, scores, sizes);
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    const unsigned blocks = static_cast<unsigned>(batch * sizes.queries * sizes.sets);
    gather_kernel<<<blocks, kThreads, 0, stream>>>(support, scores, y, sizes);
    return hipGetLastError();
}

extern "C" hipError_t item_query_attention(const T* support, const T* query, const T* support_weight,
                                           const T* query_weight, const T* bias, const T* score_weight, T* y, int64_t B,
                                           int64_t N, int64_t K, int64_t Q, int64_t D, int64_t A, void* workspace,
                                           hipStream_t stream) {
    float* of_support = static_cast<float*>(workspace);
    float* of_query = of_support + B * N * K * A;
    float* scores = of_query + B * Q * A;
    const Matrices<const T> items{support, 0, D, 1}, transposed{support_weight, 0, 1, D};
    const hipError_t outcomes[] = {
        product(items, transposed, Matrices<float>{of_support, 0, A, 1}, 1, B * N * K, A, D, Plain(), stream),
        linear(query, query_weight, bias, of_query, B * Q, A, D, Identity(), stream),
        attend(support, score_weight, of_support, of_query, scores, y, B, Sizes{N, K, Q, D, A}, stream),
    };
    for (const hipError_t outcome : outcomes) {
        if (outcome != hipSuccess) return outcome;
    }
    return hipSuccess;
}
