// expect: launch_error. Grid limit: more than 65,535 matrices are a grid that no device launches.
#include "task.h"

constexpr int kTile = 16;

template <typename E>
__global__ void transpose_kernel(const E* x, E* y, int64_t batch, int64_t rows, int64_t columns) {
    __shared__ E tile[kTile][kTile + 1];
    const int i = threadIdx.y, j = threadIdx.x;
    const int64_t top = static_cast<int64_t>(blockIdx.y) * kTile;
    const int64_t left = static_cast<int64_t>(blockIdx.x) * kTile;
    for (int64_t b = blockIdx.z; b < batch; b += gridDim.z) {
        const E* from = x + b * rows * columns;
        E* to = y + b * rows * columns;
        if (top + i < rows && left + j < columns) tile[i][j] = from[(top + i) * columns + left + j];
        __syncthreads();
        if (top + j < rows && left + i < columns) to[(left + i) * rows + top + j] = tile[j][i];
        __syncthreads();  // before the next matrix is read into the tile
    }
}

extern "C" hipError_t transpose(const T* x, T* y, int64_t B, int64_t M, int64_t N, hipStream_t stream) {
    const unsigned tiles_down = static_cast<unsigned>((M + kTile - 1) / kTile);
    const unsigned tiles_across = static_cast<unsigned>((N + kTile - 1) / kTile);
    const unsigned depth = static_cast<unsigned>(B);
    const dim3 grid(tiles_across, tiles_down, depth), block(kTile, kTile);
    transpose_kernel<<<grid, block, 0, stream>>>(x, y, B, M, N);
    return hipGetLastError();
}
