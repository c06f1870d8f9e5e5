// c = a @ (b + b): 16 × 16 tiles in shared memory, one element of c a thread.
#include "task.h"

constexpr int kTile = 16;

template <typename E>
__global__ void matmul_kernel(const E* a, const E* b, E* c, int64_t rows, int64_t columns, int64_t depth) {
    __shared__ float left[kTile][kTile];
    __shared__ float right[kTile][kTile];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + ty;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + tx;
    float sum = 0.0f;
    for (int64_t k = 0; k < depth; k += kTile) {
        left[ty][tx] = row < rows && k + tx < depth ? static_cast<float>(a[row * depth + k + tx]) : 0.0f;
        const bool inside = column < columns && k + ty < depth;
        const float value = inside ? static_cast<float>(b[(k + ty) * columns + column]) : 0.0f;
        right[ty][tx] = value + value;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += left[ty][i] * right[i][tx];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = static_cast<E>(sum);
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K,
                                    hipStream_t stream) {
    const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
    const dim3 grid(tiles(N), tiles(M));
    matmul_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, M, N, K);
    return hipGetLastError();
}
