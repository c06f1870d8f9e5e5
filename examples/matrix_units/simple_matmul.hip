#include "task.h"
#include "matrix.h"
#include "product.h"

struct Twice {
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return sum + sum; }
};

template <typename E>
__global__ void tile_kernel(const E* a, const E* b, E* c, int64_t M, int64_t N, int64_t K) {
    const int wave = threadIdx.x / matrix::kLanes, waves = blockDim.x / matrix::kLanes;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * 16;
    for (int tile = wave; tile < 4; tile += waves) {
        const int64_t row = static_cast<int64_t>(blockIdx.y) * 64 + tile * 16;
        matrix::Accumulator sums;
        for (int64_t k = 0; k < K; k += matrix::depth<E>) {
            matrix::FragmentA<E> left;
            matrix::FragmentB<E> right;
            matrix::load<matrix::row_major>(left, a + row * K + k, K, M - row, K - k);
            matrix::load<matrix::row_major>(right, b + k * N + column, N, K - k, N - column);
            matrix::multiply_accumulate(sums, left, right);
        }
        matrix::for_each(sums, [](int, int, float& value) { value *= 2.0f; });
        matrix::store(sums, c + row * N + column, N, M - row, N - column);
    }
}

template <typename E>
hipError_t launch(const E* a, const E* b, E* c, int64_t M, int64_t N, int64_t K, hipStream_t stream) {
    if constexpr (sizeof(E) == 4) {  // no unit multiplies float32 as it is on every GPU
        return product(Matrices<const E>{a, 0, K, 1}, Matrices<const E>{b, 0, N, 1}, Matrices<E>{c, 0, N, 1}, 1, M, N,
                       K, Twice(), stream);
    } else {
        const dim3 grid(static_cast<unsigned>((N + 15) / 16), static_cast<unsigned>((M + 63) / 64));
        tile_kernel<<<grid, 64, 0, stream>>>(a, b, c, M, N, K);
        return hipGetLastError();
    }
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K,
                                    hipStream_t stream) {
    return launch(a, b, c, M, N, K, stream);
}
