// Gated residual in one launch: a block adds the products of a and of b with their halves of the weight up in the same
// sums, and chooses between a and b with the gate that it then has.
#include "task.h"
#include "product.h"

#include <math.h>

template <int Tile, typename E>
__global__ void __launch_bounds__(kProductThreads, 2)
    gate_kernel(const E* a, const E* b, const E* weight, const E* bias, E* y, int64_t rows, int64_t features) {
    __shared__ ProductSlice<Tile> left, right;
    constexpr int kEach = Tile / 16;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * Tile, side = static_cast<int64_t>(blockIdx.y) * Tile;
    float sums[kEach][kEach] = {};
    for (int half = 0; half < 2; ++half) {
        const E* x = (half == 0 ? a : b) + top * features;
        const E* of_half = weight + (2 * side + half) * features;
        for (int64_t k = 0; k < features; k += kProductDepth) {
            load_slice(left, x + k, features, 1, rows - top, features - k);
            load_slice(right, of_half + k, 2 * features, 1, features - side, features - k);
            __syncthreads();
            multiply_slices(left, right, sums);
            __syncthreads();
        }
    }
#pragma unroll
    for (int i = 0; i < kEach * kEach; ++i) {
        const int64_t m = top + product_row(i / kEach), n = side + product_column(i % kEach);
        if (m < rows && n < features) {
            const int64_t at = m * features + n;
            const float gate = 1.0f / (1.0f + expf(-(sums[i / kEach][i % kEach] + static_cast<float>(bias[n]))));
            y[at] = static_cast<E>(gate * static_cast<float>(a[at]) + (1.0f - gate) * static_cast<float>(b[at]));
        }
    }
}

extern "C" hipError_t gated_selection(const T* a, const T* b, const T* weight, const T* bias, T* y, int64_t M,
                                      int64_t D, hipStream_t stream) {
    const bool large = large_tiles(1, M, D);
    const int64_t tile = large ? 128 : 64;
    const dim3 grid(static_cast<unsigned>((M + tile - 1) / tile), static_cast<unsigned>((D + tile - 1) / tile));
    const auto kernel = large ? gate_kernel<128, T> : gate_kernel<64, T>;
    kernel<<<grid, kProductThreads, 0, stream>>>(a, b, weight, bias, y, M, D);
    return hipGetLastError();
}
