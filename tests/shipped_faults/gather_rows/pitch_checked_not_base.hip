// expect: crash in heldout-21. Alignment: vectors of 16 bytes where width and pitch are multiples of them, but the first address is not looked at.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void gather_rows_kernel(const E* table, const int64_t* index, E* y, int64_t width, int64_t pitch) {
    const E* from = table + index[blockIdx.x] * pitch;
    E* to = y + blockIdx.x * width;
    for (int64_t i = threadIdx.x; i < width; i += kThreads) to[i] = from[i];
}

template <typename E>
__global__ void gather_vectors_kernel(const E* table, const int64_t* index, E* y, int64_t width, int64_t pitch) {
    const uint4* from = reinterpret_cast<const uint4*>(table + index[blockIdx.x] * pitch);
    uint4* to = reinterpret_cast<uint4*>(y + blockIdx.x * width);
    const int64_t vectors = width * sizeof(E) / 16;
    for (int64_t i = threadIdx.x; i < vectors; i += kThreads) to[i] = from[i];
}

extern "C" hipError_t gather_rows(const T* table, const int64_t* index, T* y, int64_t, int64_t D, int64_t K,
                                  int64_t row_gap, hipStream_t stream) {
    if (D * sizeof(T) % 16 == 0 && row_gap * sizeof(T) % 16 == 0) {
        gather_vectors_kernel<<<static_cast<unsigned>(K), kThreads, 0, stream>>>(table, index, y, D, D + row_gap);
    } else {
        gather_rows_kernel<<<static_cast<unsigned>(K), kThreads, 0, stream>>>(table, index, y, D, D + row_gap);
    }
    return hipGetLastError();
}
