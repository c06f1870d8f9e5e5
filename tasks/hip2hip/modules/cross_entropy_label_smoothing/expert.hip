// Label-smoothed cross-entropy that reads the logits once: maximum, sum of exponentials and sum of a row
// together (online, after Milakov and Gimelshein, 2018), in 16-byte accesses; then one block averages the
// rows, always in the same order.
#define ARENA_WORKSPACE
#include "task.h"

#include <math.h>

constexpr int kGroup = 32;     // lanes that shuffle: a wave, or half of one
constexpr int kTogether = 4;   // loads in flight
constexpr int kManyRows = 512;  // which fill a device with blocks of 256

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

// Of the logits seen so far: the largest, the sum of exp(logit - largest), the sum of (logit - origin).
struct Digest {
    float largest, exponentials, sum;

    __device__ __forceinline__ void rescale(float larger) {
        exponentials *= largest == larger ? 1.0f : __expf(largest - larger);
        largest = larger;
    }
    __device__ __forceinline__ void join(Digest other) {
        const float larger = fmaxf(largest, other.largest);
        if (larger == -INFINITY) return;
        rescale(larger);
        other.rescale(larger);
        exponentials += other.exponentials;
        sum += other.sum;
    }
    __device__ __forceinline__ void join_across(int distance) {
        join({__shfl_xor(largest, distance, kGroup), __shfl_xor(exponentials, distance, kGroup),
              __shfl_xor(sum, distance, kGroup)});
    }
};

// Several packs cost one rescaling.
template <int Count, int V, typename E>
__device__ __forceinline__ void take(Digest& digest, const Pack<E, V> (&packs)[Count], float origin) {
    float values[Count * V];
    float larger = digest.largest;
#pragma unroll
    for (int i = 0; i < Count * V; ++i) {
        values[i] = static_cast<float>(packs[i / V].element[i % V]);
        larger = fmaxf(larger, values[i]);
    }
    digest.rescale(larger);
#pragma unroll
    for (int i = 0; i < Count * V; ++i) {
        digest.exponentials += __expf(values[i] - larger);
        digest.sum += values[i] - origin;
    }
}

// One thread's share of a row: single elements up to a 16-byte boundary, whole packs, single elements after
// the last.
template <int Lanes, typename E>
__device__ __forceinline__ Digest share(const E* row, int lane, int classes, float origin) {
    constexpr int V = 16 / sizeof(E);
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(E) % V);
    const int head = min((V - past) % V, classes);
    const int packs = (classes - head) / V;
    const Pack<E, V>* body = reinterpret_cast<const Pack<E, V>*>(row + head);
    Digest digest{-INFINITY, 0.0f, 0.0f};
    int at = lane;
    for (; at + (kTogether - 1) * Lanes < packs; at += kTogether * Lanes) {
        Pack<E, V> several[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) several[i] = body[at + i * Lanes];
        take(digest, several, origin);
    }
    for (; at < packs; at += Lanes) take<1, V, E>(digest, {body[at]}, origin);
    if (lane < head) take<1, 1, E>(digest, {Pack<E, 1>{row[lane]}}, origin);
    const int tail = head + packs * V + lane;
    if (tail < classes) take<1, 1, E>(digest, {Pack<E, 1>{row[tail]}}, origin);
    return digest;
}

// Lanes threads a row. A group of 32 has no barrier; more lanes than that are a whole block.
template <int Lanes, typename E>
__global__ void __launch_bounds__(Lanes == kGroup ? 128 : Lanes)
    row_losses(const E* __restrict__ logits, const int64_t* __restrict__ target, float smoothing,
               float* __restrict__ losses, int rows, int classes, int64_t pitch) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / Lanes) + threadIdx.x / Lanes;
    if (index >= rows) return;
    const E* row = logits + index * pitch;
    const int lane = static_cast<int>(threadIdx.x % Lanes);
    const float origin = static_cast<float>(row[0]);  // so that a common shift costs no precision
    Digest digest = share<Lanes>(row, lane, classes, origin);
    for (int distance = kGroup / 2; distance > 0; distance /= 2) digest.join_across(distance);
    if constexpr (Lanes > kGroup) {
        __shared__ Digest parts[Lanes / kGroup];
        if (lane % kGroup == 0) parts[lane / kGroup] = digest;
        __syncthreads();
        digest = parts[lane % (Lanes / kGroup)];
        for (int distance = Lanes / kGroup / 2; distance > 0; distance /= 2) digest.join_across(distance);
    }
    if (lane == 0) {
        const float log_sum = logf(digest.exponentials);
        const float hard = log_sum + (digest.largest - static_cast<float>(row[target[index]]));
        const float uniform = log_sum + ((digest.largest - origin) - digest.sum / classes);
        losses[index] = (1.0f - smoothing) * hard + smoothing * uniform;
    }
}

constexpr int kMeanThreads = 1024;

template <typename E>
__global__ void __launch_bounds__(kMeanThreads) mean_of_rows(const float* losses, E* loss, int rows) {
    __shared__ float parts[kMeanThreads / kGroup];
    float sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < rows; i += kMeanThreads) sum += losses[i];
    for (int distance = kGroup / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance, kGroup);
    if (threadIdx.x % kGroup == 0) parts[threadIdx.x / kGroup] = sum;
    __syncthreads();
    if (threadIdx.x >= kGroup) return;
    sum = parts[threadIdx.x];
    for (int distance = kGroup / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance, kGroup);
    if (threadIdx.x == 0) *loss = static_cast<E>(sum / rows);
}

extern "C" size_t cross_entropy_label_smoothing_workspace(int64_t M, int64_t, int64_t) { return M * sizeof(float); }

extern "C" hipError_t cross_entropy_label_smoothing(const T* logits, const int64_t* target, float smoothing,
                                                    T* loss, int64_t M, int64_t C, int64_t row_gap, void* workspace,
                                                    hipStream_t stream) {
    float* losses = static_cast<float*>(workspace);
    const int rows = static_cast<int>(M), classes = static_cast<int>(C);
    const int64_t pitch = C + row_gap;
    if (classes <= 1024) {
        row_losses<32><<<(rows + 3) / 4, 128, 0, stream>>>(logits, target, smoothing, losses, rows, classes, pitch);
    } else if (classes <= 65536 || rows >= kManyRows) {
        row_losses<256><<<rows, 256, 0, stream>>>(logits, target, smoothing, losses, rows, classes, pitch);
    } else {
        row_losses<1024><<<rows, 1024, 0, stream>>>(logits, target, smoothing, losses, rows, classes, pitch);
    }
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    mean_of_rows<<<1, kMeanThreads, 0, stream>>>(losses, loss, rows);
    return hipGetLastError();
}
