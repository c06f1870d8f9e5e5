// Additive attention over the items of support sets: both projections in float32 scratch memory, then a block for each
// query and set: a wave an item for the scores, the whole block for softmax and weighted sum.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kMostItems = 2048;

struct Sizes {
    int64_t sets, items, queries, features, width;
};

// The scores of all items of a set for one query; lane by lane along the width.
template <typename E>
__device__ void score_items(const float* of_support, const float* of_query, const E* score_weight, float* scores,
                            const Sizes& sizes) {
    const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize, waves = kThreads / warpSize;
    for (int64_t k = wave; k < sizes.items; k += waves) {
        float score = 0.0f;
        for (int64_t i = lane; i < sizes.width; i += warpSize) {
            score += static_cast<float>(score_weight[i]) * tanhf(of_support[k * sizes.width + i] + of_query[i]);
        }
        for (int distance = warpSize / 2; distance > 0; distance /= 2) score += __shfl_xor(score, distance);
        scores[k] = score;  // which is the same in every lane
    }
    __syncthreads();
}

// Scores become weights that are not divided by their sum yet, which every thread gets.
__device__ float exponentiate(float* scores, int64_t items) {
    float largest = scores[0];
    for (int64_t k = threadIdx.x; k < items; k += kThreads) largest = fmaxf(largest, scores[k]);
    largest = block_max(largest);
    float total = 0.0f;
    for (int64_t k = threadIdx.x; k < items; k += kThreads) {
        scores[k] = expf(scores[k] - largest);
        total += scores[k];
    }
    return block_sum(total);
}

template <typename E>
__global__ void attend_kernel(const E* support, const E* score_weight, const float* of_support, const float* of_query,
                              E* y, Sizes sizes) {
    __shared__ float scores[kMostItems];
    const int64_t asked = blockIdx.x / sizes.sets;  // of the queries of all episodes
    const int64_t set = asked / sizes.queries * sizes.sets + blockIdx.x % sizes.sets;  // of the sets of all episodes
    score_items(of_support + set * sizes.items * sizes.width, of_query + asked * sizes.width, score_weight, scores,
                sizes);
    const float total = exponentiate(scores, sizes.items);
    const E* items = support + set * sizes.items * sizes.features;
    for (int64_t d = threadIdx.x; d < sizes.features; d += kThreads) {
        float sum = 0.0f;
        for (int64_t k = 0; k < sizes.items; ++k) {
            sum += scores[k] * static_cast<float>(items[k * sizes.features + d]);
        }
        y[blockIdx.x * sizes.features + d] = static_cast<E>(sum / total);
    }
}

extern "C" size_t item_query_attention_workspace(int64_t B, int64_t N, int64_t K, int64_t Q, int64_t, int64_t A) {
    return B * (N * K + Q) * A * sizeof(float);
}

static hipError_t attend(const T* support, const T* score_weight, const float* of_support, const float* of_query, T* y,
                         int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const unsigned blocks = static_cast<unsigned>(batch * sizes.queries * sizes.sets);
    attend_kernel<<<blocks, kThreads, 0, stream>>>(support, score_weight, of_support, of_query, y, sizes);
    return hipGetLastError();
}

extern "C" hipError_t item_query_attention(const T* support, const T* query, const T* support_weight,
                                           const T* query_weight, const T* bias, const T* score_weight, T* y, int64_t B,
                                           int64_t N, int64_t K, int64_t Q, int64_t D, int64_t A, void* workspace,
                                           hipStream_t stream) {
    float* of_support = static_cast<float*>(workspace);
    float* of_query = of_support + B * N * K * A;
    const Matrices<const T> items{support, 0, D, 1}, transposed{support_weight, 0, 1, D};
    const hipError_t outcomes[] = {
        product(items, transposed, Matrices<float>{of_support, 0, A, 1}, 1, B * N * K, A, D, Plain(), stream),
        linear(query, query_weight, bias, of_query, B * Q, A, D, Identity(), stream),
        attend(support, score_weight, of_support, of_query, y, B, Sizes{N, K, Q, D, A}, stream),
    };
    for (const hipError_t outcome : outcomes) {
        if (outcome != hipSuccess) return outcome;
    }
    return hipSuccess;
}
