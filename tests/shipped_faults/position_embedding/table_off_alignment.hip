// expect: crash or launch_error or wrong_result in heldout-03. Misaligned vectors: a row of the table may begin between.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
struct alignas(4 * sizeof(E)) Four {
    E of[4];
};

template <typename E>
__global__ void add_fours_kernel(const E* x, const E* rows, E* y, int64_t of_sequence, int64_t count) {
    const int64_t i = 4 * (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x);
    if (i >= count) return;
    const Four<E> left = *reinterpret_cast<const Four<E>*>(x + i);
    const Four<E> right = *reinterpret_cast<const Four<E>*>(rows + i % of_sequence);
    Four<E> sum;
    for (int j = 0; j < 4; ++j) {
        sum.of[j] = static_cast<E>(static_cast<float>(left.of[j]) + static_cast<float>(right.of[j]));
    }
    *reinterpret_cast<Four<E>*>(y + i) = sum;
}

template <typename E>
__global__ void add_rows_kernel(const E* x, const E* rows, E* y, int64_t of_sequence, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    y[i] = static_cast<E>(static_cast<float>(x[i]) + static_cast<float>(rows[i % of_sequence]));
}

extern "C" hipError_t position_embedding(const T* x, const T* table, int64_t start, T* y, int64_t B, int64_t L,
                                         int64_t D, int64_t, hipStream_t stream) {
    const int64_t count = B * L * D;
    if (L * D % 4 == 0 && reinterpret_cast<uintptr_t>(x) % sizeof(Four<T>) == 0) {
        const unsigned fours = static_cast<unsigned>((count / 4 + kThreads - 1) / kThreads);
        add_fours_kernel<<<fours, kThreads, 0, stream>>>(x, table + start * D, y, L * D, count);
        return hipGetLastError();
    }
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    add_rows_kernel<<<blocks, kThreads, 0, stream>>>(x, table + start * D, y, L * D, count);
    return hipGetLastError();
}
