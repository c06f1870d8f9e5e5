// expect: wrong_result in heldout-20. Alignment: eight elements get the place of the first, also where a sequence ends between.
// Learned position embeddings, one element a thread. Sequences lie behind one another, so the element's place
// within its own sequence is also its place in the table, counted from row `start`.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void add_rows_kernel(const E* x, const E* rows, E* y, int64_t of_sequence, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    y[i] = static_cast<E>(static_cast<float>(x[i]) + static_cast<float>(rows[i % of_sequence]));
}

template <typename E>
__global__ void add_eight_kernel(const E* x, const E* rows, E* y, int64_t of_sequence, int64_t count, int64_t last) {
    const int64_t i = 8 * (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x);
    if (i >= count) return;
    const int64_t place = i % of_sequence;
    for (int64_t j = 0; j < 8 && i + j < count; ++j) {
        const int64_t at = place + j < last ? place + j : last - 1;
        y[i + j] = static_cast<E>(static_cast<float>(x[i + j]) + static_cast<float>(rows[at]));
    }
}

extern "C" hipError_t position_embedding(const T* x, const T* table, int64_t start, T* y, int64_t B, int64_t L,
                                         int64_t D, int64_t P, hipStream_t stream) {
    const int64_t count = B * L * D;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    if (D % 4 == 0) {
        const unsigned few = static_cast<unsigned>((count + 8 * kThreads - 1) / (8 * kThreads));
        add_eight_kernel<<<few, kThreads, 0, stream>>>(x, table + start * D, y, L * D, count, (P - start) * D);
        return hipGetLastError();
    }
    add_rows_kernel<<<blocks, kThreads, 0, stream>>>(x, table + start * D, y, L * D, count);
    return hipGetLastError();
}
