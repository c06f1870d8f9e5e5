// Products with matrix.h in every way of loading: one entry, by numbers.
#include "task.h"
#include "matrix.h"

constexpr int kThreads = 64;
constexpr int kStride = 48;  // of lines in shared memory: more than a tile's, and a multiple of 16 bytes

using matrix::Layout;

// Copies a tile into shared memory, element by element.
template <typename E>
__device__ void stage(E* to, const E* from, int64_t stride, int lines, int length) {
    for (int i = threadIdx.x % matrix::kLanes; i < lines * length; i += matrix::kLanes) {
        to[i / length * kStride + i % length] = from[i / length * stride + i % length];
    }
}

struct Larger {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// Takes the largest of a tile's row away from each of its elements.
__device__ void less_the_largest(matrix::Accumulator& sums) {
    matrix::RowValues largest;
    for (float& value : largest.value) value = -INFINITY;
    matrix::for_each(sums, largest, [](int, int, float& value, float& of_row) { of_row = Larger()(of_row, value); });
    matrix::combine_lanes(largest, Larger());
    matrix::for_each(sums, largest, [](int, int, float& value, float& of_row) { value -= of_row; });
}

// Waves take turns at the tiles of a block's 16 columns. way: 0 within bounds, 1 whole tiles, 2 from shared memory,
// 3 whole tiles, less the largest of each of their rows.
template <Layout left, Layout right, typename E>
__global__ void product_kernel(const E* a, const E* b, float* c, int64_t M, int64_t N, int64_t K, int way) {
    constexpr int waves = kThreads / matrix::kLanes, depth = matrix::depth<E>;
    __shared__ alignas(16) E tiles[waves][2][32 * kStride];
    const int wave = threadIdx.x / matrix::kLanes;
    const int64_t column = blockIdx.x * 16, lda = left == matrix::row_major ? K : M;
    const int64_t ldb = right == matrix::row_major ? N : K;
    for (int64_t start = 0; start < M; start += 16 * waves) {
        const int64_t row = start + 16 * wave;
        matrix::Accumulator sums;
        for (int64_t k = 0; k < K; k += depth) {
            matrix::FragmentA<E> one;
            matrix::FragmentB<E> other;
            const E* from_a = left == matrix::row_major ? a + row * lda + k : a + k * lda + row;
            const E* from_b = right == matrix::row_major ? b + k * ldb + column : b + column * ldb + k;
            if (way == 0) {
                matrix::load<left>(one, from_a, lda, M - row, K - k);
                matrix::load<right>(other, from_b, ldb, K - k, N - column);
            } else if (way != 2) {
                if (row >= M) continue;
                matrix::load<left>(one, from_a, lda);
                matrix::load<right>(other, from_b, ldb);
            } else {
                if (row < M) {
                    stage(tiles[wave][0], from_a, lda, left ? depth : 16, left ? 16 : depth);
                    stage(tiles[wave][1], from_b, ldb, right ? 16 : depth, right ? depth : 16);
                }
                __syncthreads();
                matrix::load_shared<left>(one, tiles[wave][0], kStride);
                matrix::load_shared<right>(other, tiles[wave][1], kStride);
                __syncthreads();
            }
            matrix::multiply_accumulate(sums, one, other);
        }
        matrix::for_each(sums, [&](int i, int j, float& value) { value += 1000.0f * (row + i) + (column + j); });
        if (way == 3) less_the_largest(sums);
        if (way == 0) {
            matrix::store(sums, c + row * N + column, N, M - row, N - column);
        } else if (row < M) {
            matrix::store(sums, c + row * N + column, N);
        }
    }
}

template <typename E>
static hipError_t product(const void* a, const void* b, float* c, int64_t M, int64_t N, int64_t K, int layouts, int way,
                          hipStream_t stream) {
    const E* left = static_cast<const E*>(a);
    const E* right = static_cast<const E*>(b);
    const unsigned blocks = static_cast<unsigned>((N + 15) / 16);
    if (layouts == 0) {
        product_kernel<matrix::row_major, matrix::row_major><<<blocks, kThreads, 0, stream>>>(left, right, c, M, N, K, way);
    } else if (layouts == 1) {
        product_kernel<matrix::row_major, matrix::column_major><<<blocks, kThreads, 0, stream>>>(left, right, c, M, N, K, way);
    } else if (layouts == 2) {
        product_kernel<matrix::column_major, matrix::row_major><<<blocks, kThreads, 0, stream>>>(left, right, c, M, N, K, way);
    } else {
        product_kernel<matrix::column_major, matrix::column_major><<<blocks, kThreads, 0, stream>>>(left, right, c, M, N, K, way);
    }
    return hipGetLastError();
}

// c[i][j] = sum over k of a[i][k] b[k][j] + 1000 i + j.
extern "C" hipError_t entry(const void* a, const void* b, float* c, int64_t M, int64_t N, int64_t K, int64_t kind,
                            int64_t layouts, int64_t way, hipStream_t stream) {
    const int how = static_cast<int>(layouts), loads = static_cast<int>(way);
    if (kind == 0) return product<__half>(a, b, c, M, N, K, how, loads, stream);
    if (kind == 1) return product<__hip_bfloat16>(a, b, c, M, N, K, how, loads, stream);
    if (kind == 2) return product<__hip_fp8_e4m3>(a, b, c, M, N, K, how, loads, stream);
#if defined(__HIP_PLATFORM_AMD__)
    if (kind == 4) return product<__hip_fp8_e4m3_fnuz>(a, b, c, M, N, K, how, loads, stream);
#endif
    return product<__hip_fp8_e5m2>(a, b, c, M, N, K, how, loads, stream);
}
