// Distillation loss that reads the logits once. For both distributions the maximum and the sum of exponentials are kept
// online (after Milakov and Gimelshein, 2018), and with the teacher's the sum of exp(t) · (t - s), from which a row's
// loss follows. 16-byte accesses where both rows are aligned alike; then one block adds up the rows, in a fixed order.
#define ARENA_WORKSPACE
#include "task.h"

#include <math.h>

constexpr int kGroup = 32;  // lanes that shuffle: a wave, or half of one
constexpr int kManyRows = 512;  // which fill a device with blocks of 256

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

// The factor that turns exponentials below `from` into exponentials below `to`; both may still be -INFINITY.
__device__ __forceinline__ float rescaling(float from, float to, float inverse) {
    return from == to ? 1.0f : __expf((from - to) * inverse);
}

// Of the logits seen so far: maxima, sums of exp((logit - maximum) / temperature), and the sum of the teacher's
// exponentials times (teacher - student), each less its origin, a logit of the row.
struct Digest {
    float student_max, student_sum, teacher_max, teacher_sum, gap;

    __device__ __forceinline__ void raise(float student, float teacher, float inverse) {
        student_sum *= rescaling(student_max, student, inverse);
        const float factor = rescaling(teacher_max, teacher, inverse);
        teacher_sum *= factor;
        gap *= factor;
        student_max = student;
        teacher_max = teacher;
    }
    __device__ __forceinline__ void join(Digest other, float inverse) {
        const float student = fmaxf(student_max, other.student_max), teacher = fmaxf(teacher_max, other.teacher_max);
        if (student == -INFINITY) return;  // neither has seen a logit
        raise(student, teacher, inverse);
        other.raise(student, teacher, inverse);
        student_sum += other.student_sum;
        teacher_sum += other.teacher_sum;
        gap += other.gap;
    }
    __device__ __forceinline__ void join_across(int distance, float inverse) {
        join({__shfl_xor(student_max, distance, kGroup), __shfl_xor(student_sum, distance, kGroup),
              __shfl_xor(teacher_max, distance, kGroup), __shfl_xor(teacher_sum, distance, kGroup),
              __shfl_xor(gap, distance, kGroup)},
             inverse);
    }
};

// What is the same for all logits of a row.
struct Row {
    float student_origin, teacher_origin, inverse;
};

// Several packs cost one rescaling. They are added up by themselves: logits of 16 bits have few values, and adding the
// same number to a long sum a thousand times rounds the same way each time.
template <int Count, int V, typename E>
__device__ __forceinline__ void take(Digest& digest, const Pack<E, V> (&student)[Count],
                                     const Pack<E, V> (&teacher)[Count], Row row) {
    float s[Count * V], t[Count * V];
    float student_max = digest.student_max, teacher_max = digest.teacher_max;
#pragma unroll
    for (int i = 0; i < Count * V; ++i) {
        s[i] = static_cast<float>(student[i / V].element[i % V]);
        t[i] = static_cast<float>(teacher[i / V].element[i % V]);
        student_max = fmaxf(student_max, s[i]);
        teacher_max = fmaxf(teacher_max, t[i]);
    }
    digest.raise(student_max, teacher_max, row.inverse);
    float student_sum = 0.0f, teacher_sum = 0.0f, gap = 0.0f;
#pragma unroll
    for (int i = 0; i < Count * V; ++i) {
        const float exponential = __expf((t[i] - teacher_max) * row.inverse);
        student_sum += __expf((s[i] - student_max) * row.inverse);
        teacher_sum += exponential;
        gap += exponential * ((t[i] - row.teacher_origin) - (s[i] - row.student_origin));
    }
    digest.student_sum += student_sum;
    digest.teacher_sum += teacher_sum;
    digest.gap += gap;
}

template <int Lanes, int V, typename E>
__device__ __forceinline__ Digest share(const E* student, const E* teacher, int lane, int classes, Row row) {
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(student) / sizeof(E) % V);
    const int head = min((V - past) % V, classes);  // single elements up to a boundary
    const int packs = (classes - head) / V;
    const Pack<E, V>* s = reinterpret_cast<const Pack<E, V>*>(student + head);
    const Pack<E, V>* t = reinterpret_cast<const Pack<E, V>*>(teacher + head);
    Digest digest{-INFINITY, 0.0f, -INFINITY, 0.0f, 0.0f};
    constexpr int kTogether = V == 8 ? 2 : 4;  // loads in flight of each
    int at = lane;
    for (; at + (kTogether - 1) * Lanes < packs; at += kTogether * Lanes) {
        Pack<E, V> of_student[kTogether], of_teacher[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) of_student[i] = s[at + i * Lanes], of_teacher[i] = t[at + i * Lanes];
        take(digest, of_student, of_teacher, row);
    }
    for (; at < packs; at += Lanes) take<1, V, E>(digest, {s[at]}, {t[at]}, row);
    using One = Pack<E, 1>;
    if (lane < head) take<1, 1, E>(digest, {One{student[lane]}}, {One{teacher[lane]}}, row);
    const int tail = head + packs * V + lane;
    if (tail < classes) take<1, 1, E>(digest, {One{student[tail]}}, {One{teacher[tail]}}, row);
    return digest;
}

// Lanes threads a row: a group of 32, or the whole block.
template <int Lanes, typename E>
__global__ void __launch_bounds__(Lanes == kGroup ? 128 : Lanes)
    row_losses(const E* __restrict__ student, const E* __restrict__ teacher, float temperature, float* losses, int rows,
               int classes) {
    constexpr int V = 16 / sizeof(E);
    const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / Lanes) + threadIdx.x / Lanes;
    if (index >= rows) return;  // whole groups, and only where a group needs no barrier
    const E *s = student + index * classes, *t = teacher + index * classes;
    const Row row{static_cast<float>(s[0]), static_cast<float>(t[0]), 1.0f / temperature};
    const int lane = static_cast<int>(threadIdx.x % Lanes);
    const bool alike = (reinterpret_cast<uintptr_t>(s) - reinterpret_cast<uintptr_t>(t)) % 16 == 0;
    Digest digest = alike ? share<Lanes, V>(s, t, lane, classes, row) : share<Lanes, 1>(s, t, lane, classes, row);
    for (int distance = kGroup / 2; distance > 0; distance /= 2) digest.join_across(distance, row.inverse);
    if constexpr (Lanes > kGroup) {
        __shared__ Digest parts[Lanes / kGroup];
        if (threadIdx.x % kGroup == 0) parts[threadIdx.x / kGroup] = digest;
        __syncthreads();
        if (threadIdx.x >= kGroup) return;
        digest = parts[threadIdx.x % (Lanes / kGroup)];
        for (int distance = Lanes / kGroup / 2; distance > 0; distance /= 2) digest.join_across(distance, row.inverse);
    }
    if (lane != 0) return;
    const float apart = (digest.teacher_max - row.teacher_origin) - (digest.student_max - row.student_origin);
    const float mean = (digest.gap / digest.teacher_sum - apart) * row.inverse;  // of both, counted from the maxima
    losses[index] = mean - logf(digest.teacher_sum) + logf(digest.student_sum);
}

constexpr int kSumThreads = 1024;

__global__ void __launch_bounds__(kSumThreads)
    sum_of_rows(const float* losses, float temperature, float* loss, int rows) {
    __shared__ float parts[kSumThreads / kGroup];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += kSumThreads) sum += losses[i];
    for (int distance = kGroup / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance, kGroup);
    if (threadIdx.x % kGroup == 0) parts[threadIdx.x / kGroup] = sum;
    __syncthreads();
    if (threadIdx.x >= kGroup) return;
    sum = parts[threadIdx.x];
    for (int distance = kGroup / 2; distance > 0; distance /= 2) sum += __shfl_xor(sum, distance, kGroup);
    if (threadIdx.x == 0) *loss = temperature * temperature * sum;
}

extern "C" size_t distillation_loss_workspace(int64_t M, int64_t) { return M * sizeof(float); }

extern "C" hipError_t distillation_loss(const T* student, const T* teacher, float temperature, float* loss, int64_t M,
                                        int64_t C, void* workspace, hipStream_t stream) {
    float* losses = static_cast<float*>(workspace);
    const int rows = static_cast<int>(M), classes = static_cast<int>(C);
    if (classes <= 1024) {
        row_losses<32><<<(rows + 3) / 4, 128, 0, stream>>>(student, teacher, temperature, losses, rows, classes);
    } else if (classes <= 65536 || rows >= kManyRows) {
        row_losses<256><<<rows, 256, 0, stream>>>(student, teacher, temperature, losses, rows, classes);
    } else {
        row_losses<1024><<<rows, 1024, 0, stream>>>(student, teacher, temperature, losses, rows, classes);
    }
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    sum_of_rows<<<1, kSumThreads, 0, stream>>>(losses, temperature, loss, rows);
    return hipGetLastError();
}
