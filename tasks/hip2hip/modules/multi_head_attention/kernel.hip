// Multi-head attention in five launches: the projections of query, key and value in float32 scratch memory, the key's
// transposed; then a block for each head of a query, its scores in shared memory; then the output projection.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kThreads = 256;  // no head has more features

struct Sizes {
    int64_t queries, keys, heads, features;
    __host__ __device__ int64_t width() const { return heads * features; }
};

// One query's scores over the keys of its head, and the largest of them. `keys`: (features, keys) of this head, so that
// threads side by side read keys side by side.
__device__ float score_keys(const float* query, const float* keys, const bool* mask, float* scores,
                            const Sizes& sizes) {
    const float scale = 1.0f / sqrtf(static_cast<float>(sizes.features));
    float largest = -INFINITY;
    for (int64_t s = threadIdx.x; s < sizes.keys; s += kThreads) {
        float score = 0.0f;
        for (int64_t d = 0; d < sizes.features; ++d) score += query[d] * keys[d * sizes.keys + s];
        scores[s] = mask == nullptr || mask[s] ? score * scale : -1e9f;
        largest = fmaxf(largest, scores[s]);
    }
    return block_max(largest);
}

// sum over keys of scores[s] * values[s], for the feature threadIdx.x % features; groups of threads share the keys, and
// their parts are added up in the order of the groups. Only the first group's threads get the sum; what threads after
// the last whole group add up is for nobody.
__device__ float weigh_values(const float* scores, const float* values, float* parts, const Sizes& sizes) {
    const int features = static_cast<int>(sizes.features), groups = kThreads / features;
    const int group = threadIdx.x / features, d = threadIdx.x % features;
    float sum = 0.0f;
    for (int64_t s = group; s < sizes.keys; s += groups) sum += scores[s] * values[s * sizes.width() + d];
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int other = 1; other < groups && group == 0; ++other) sum += parts[other * features + d];
    return sum;
}

// Blocks count (batch, queries, heads); query and context: (batch, queries, heads, features).
__global__ void attend_kernel(const float* query, const float* keys, const float* values, const bool* mask,
                              float* context, Sizes sizes) {
    extern __shared__ float scores[];  // one a key
    __shared__ float parts[kThreads];
    const int64_t head = blockIdx.x % sizes.heads, row = blockIdx.x / sizes.heads, sample = row / sizes.queries;
    const int64_t at = static_cast<int64_t>(blockIdx.x) * sizes.features;
    const float* head_keys = keys + (sample * sizes.heads + head) * sizes.features * sizes.keys;
    const bool* row_mask = mask == nullptr ? nullptr : mask + row * sizes.keys;
    const float largest = score_keys(query + at, head_keys, row_mask, scores, sizes);
    float total = 0.0f;
    for (int64_t s = threadIdx.x; s < sizes.keys; s += kThreads) {
        scores[s] = expf(scores[s] - largest);
        total += scores[s];
    }
    total = block_sum(total);
    const float* head_values = values + sample * sizes.keys * sizes.width() + head * sizes.features;
    const float sum = weigh_values(scores, head_values, parts, sizes);
    if (threadIdx.x < sizes.features) context[at + threadIdx.x] = sum / total;
}

extern "C" size_t multi_head_attention_workspace(int64_t B, int64_t L, int64_t S, int64_t H, int64_t D) {
    return 2 * B * (L + S) * H * D * sizeof(float);
}

static hipError_t attend(const float* queries, const float* keys, const float* values, const bool* mask, float* context,
                         int64_t batch, const Sizes& sizes, hipStream_t stream) {
    const unsigned blocks = static_cast<unsigned>(batch * sizes.queries * sizes.heads);
    const size_t shared = sizes.keys * sizeof(float);
    attend_kernel<<<blocks, kThreads, shared, stream>>>(queries, keys, values, mask, context, sizes);
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
