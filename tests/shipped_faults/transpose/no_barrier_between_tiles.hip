// expect: wrong_result in seen-01. Missing barrier: the next matrix is read into the tile while others still write from it.
#include "task.h"

constexpr int kTile = 16;

template <typename E>
__global__ void transpose_tiles(const E* x, E* y, int64_t batch, int64_t rows, int64_t columns) {
    __shared__ E tile[kTile][kTile + 1];
    const int i = threadIdx.y, j = threadIdx.x;
    const int64_t top = static_cast<int64_t>(blockIdx.y) * kTile, left = static_cast<int64_t>(blockIdx.x) * kTile;
    for (int64_t b = 0; b < batch; ++b) {
        const E* from = x + b * rows * columns;
        E* to = y + b * rows * columns;
        if (top + i < rows && left + j < columns) tile[i][j] = from[(top + i) * columns + left + j];
        __syncthreads();
        if (top + j < rows && left + i < columns) to[(left + i) * rows + top + j] = tile[j][i];
    }
}

extern "C" hipError_t transpose(const T* x, T* y, int64_t B, int64_t M, int64_t N, hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
    transpose_tiles<<<grid, dim3(kTile, kTile), 0, stream>>>(x, y, B, M, N);
    return hipGetLastError();
}
