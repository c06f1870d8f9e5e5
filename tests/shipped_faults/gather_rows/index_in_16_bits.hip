// expect: wrong_result in heldout-20. Size limit: the index is staged in shared memory as 16-bit numbers.
// Gathers rows, one block a row, whose threads go along it.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
__global__ void gather_rows_kernel(const E* table, const int64_t* index, E* y, int64_t width, int64_t pitch) {
    __shared__ unsigned short row;
    if (threadIdx.x == 0) row = static_cast<unsigned short>(index[blockIdx.x]);
    __syncthreads();
    const E* from = table + static_cast<int64_t>(row) * pitch;
    E* to = y + blockIdx.x * width;
    for (int64_t i = threadIdx.x; i < width; i += kThreads) to[i] = from[i];
}

extern "C" hipError_t gather_rows(const T* table, const int64_t* index, T* y, int64_t, int64_t D, int64_t K,
                                  int64_t row_gap, hipStream_t stream) {
    gather_rows_kernel<<<static_cast<unsigned>(K), kThreads, 0, stream>>>(table, index, y, D, D + row_gap);
    return hipGetLastError();
}
