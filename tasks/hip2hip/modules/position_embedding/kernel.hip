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

extern "C" hipError_t position_embedding(const T* x, const T* table, int64_t start, T* y, int64_t B, int64_t L,
                                         int64_t D, int64_t, hipStream_t stream) {
    const int64_t count = B * L * D;
    const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    add_rows_kernel<<<blocks, kThreads, 0, stream>>>(x, table + start * D, y, L * D, count);
    return hipGetLastError();
}
