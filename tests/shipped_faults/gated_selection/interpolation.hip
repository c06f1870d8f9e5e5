// expect: wrong_result in heldout-19. Cancellation: y is computed as b + z * (a - b), which loses a beside a far larger b.
// Gated residual in one launch: a block adds the products of a and of b with their halves of the weight up in the same
// sums, and chooses between a and b with the gate that it then has.
#include "task.h"
#include "product.h"

#include <math.h>

template <typename Sums, typename E>
__global__ void __launch_bounds__(kProductThreads, 2)
    gate_kernel(const E* a, const E* b, const E* weight, const E* bias, E* y, int64_t rows, int64_t features) {
    __shared__ Slices<Sums> slices;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * Sums::kTile;
    const int64_t side = static_cast<int64_t>(blockIdx.y) * Sums::kTile;
    Sums sums;
    for (int half = 0; half < 2; ++half) {
        const Matrices<const E> x{(half == 0 ? a : b) + top * features, 0, features, 1};
        const Matrices<const E> of_half{weight + (2 * side + half) * features, 0, 1, 2 * features};
        add_products(sums, slices, x, of_half, rows - top, features - side, features);
    }
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < rows && n < features) {
            const int64_t at = m * features + n;
            const float gate = 1.0f / (1.0f + expf(-(sum + static_cast<float>(bias[n]))));
            const float from = static_cast<float>(b[at]);
            y[at] = static_cast<E>(from + gate * (static_cast<float>(a[at]) - from));
        }
    });
}

extern "C" hipError_t gated_selection(const T* a, const T* b, const T* weight, const T* bias, T* y, int64_t M,
                                      int64_t D, hipStream_t stream) {
    return with_sums<T>(1, M, D, [&](auto sums, dim3 grid) {
        gate_kernel<typename decltype(sums)::type><<<grid, kProductThreads, 0, stream>>>(a, b, weight, bias, y, M, D);
    });
}
