// expect: wrong_result in heldout-15. Size limit: at most 32 parts of the sum are added up.
// c = a @ (b + b). A block has 128 × 64 results and keeps them in registers: of float32 a thread has 8 × 4, of 16 bits a
// wave has tiles of 16 × 16 that matrix units multiply. While the block multiplies one slice in shared memory, the
// elements of the next are on their way. Where there are few blocks, the sums are cut into parts along K, which a second
// launch adds up in order. The product is doubled as it is stored.
#define ARENA_WORKSPACE
#include "task.h"
#include "matrix.h"

#include <type_traits>

constexpr int kThreads = 256;
constexpr int kRows = 128, kColumns = 64;
template <typename E>
constexpr int kDepth = sizeof(E) == 2 ? 32 : 16;  // of a slice
constexpr int64_t kManyResults = 512 * 1024;  // which fill a device
constexpr int64_t kPart = 1024;               // about the length of a part

struct Sizes {
    int64_t rows, columns, depth, part;
};

__device__ inline int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

// float32: along the rows of a, and the columns of b.
struct ThreadSlice {
    alignas(16) float a[kDepth<float>][kRows + 4];
    alignas(16) float b[kDepth<float>][kColumns + 4];

    __device__ void set_a(int row, int k, float element) { a[k][row] = element; }
    __device__ void set_b(int k, int column, float element) { b[k][column] = element; }
};

// 16 bits: as they lie in memory. Lines are 16 bytes longer, so that a load touches different banks.
template <typename E>
struct UnitSlice {
    alignas(16) E a[kRows][kDepth<E> + 8];
    alignas(16) E b[kDepth<E>][kColumns + 8];

    __device__ void set_a(int row, int k, E element) { a[row][k] = element; }
    __device__ void set_b(int k, int column, E element) { b[k][column] = element; }
};

// A thread's elements of a slice on their way into shared memory: of a along K, of b along the rows. After the last row
// or column the last is read again, whose results are not stored; after the end of K, zeros of a.
template <typename E>
struct Underway {
    static constexpr int kDeep = kDepth<E>, kOfA = kRows * kDeep / kThreads, kOfB = kColumns * kDeep / kThreads;
    E a[kOfA], b[kOfB];

    __device__ void fetch(const E* from_a, const E* from_b, int64_t top, int64_t side, int64_t k, int64_t end,
                          const Sizes& sizes) {
#pragma unroll
        for (int i = 0; i < kOfA; ++i) {
            const int64_t m = lesser(top + threadIdx.x / kDeep + i * kThreads / kDeep, sizes.rows - 1);
            const int64_t at = k + threadIdx.x % kDeep;
            a[i] = at < end ? from_a[m * sizes.depth + at] : static_cast<E>(0.0f);
        }
#pragma unroll
        for (int i = 0; i < kOfB; ++i) {
            const int64_t n = lesser(side + threadIdx.x % kColumns, sizes.columns - 1);
            const int64_t at = lesser(k + threadIdx.x / kColumns + i * kThreads / kColumns, end - 1);
            b[i] = from_b[at * sizes.columns + n];
        }
    }
    template <typename Slice>
    __device__ void keep(Slice& slice) const {
#pragma unroll
        for (int i = 0; i < kOfA; ++i) {
            slice.set_a(threadIdx.x / kDeep + i * kThreads / kDeep, threadIdx.x % kDeep, a[i]);
        }
#pragma unroll
        for (int i = 0; i < kOfB; ++i) {
            slice.set_b(threadIdx.x / kColumns + i * kThreads / kColumns, threadIdx.x % kColumns, b[i]);
        }
    }
};

// A thread's results in float32. Rows are two runs of four, 64 apart.
struct ThreadSums {
    float sums[8][4] = {};

    __device__ static int row_of(int i) { return i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4; }
    __device__ static int column_of(int j) { return threadIdx.x % 16 * 4 + j; }

    __device__ void multiply(const ThreadSlice& slice) {
#pragma unroll 4
        for (int k = 0; k < kDepth<float>; ++k) {
            float left[8], right[4];
#pragma unroll
            for (int i = 0; i < 8; ++i) left[i] = slice.a[k][row_of(i)];
#pragma unroll
            for (int j = 0; j < 4; ++j) right[j] = slice.b[k][column_of(j)];
#pragma unroll
            for (int i = 0; i < 32; ++i) sums[i / 4][i % 4] += left[i / 4] * right[i % 4];
        }
    }
    // action(row, column, sum) for each result.
    template <typename Action>
    __device__ void for_each(Action action) {
#pragma unroll
        for (int i = 0; i < 32; ++i) action(row_of(i / 4), column_of(i % 4), sums[i / 4][i % 4]);
    }
};

// A wave's results on matrix units: 32 rows, and 32 columns with eight waves a block, 64 with four.
template <typename E>
struct UnitSums {
    static constexpr int kWide = kColumns / 16 * 4 / (kThreads / matrix::kLanes);  // tiles side by side
    matrix::Accumulator sums[2][kWide];

    __device__ static int top() { return static_cast<int>(threadIdx.x) / matrix::kLanes % 4 * 32; }
    __device__ static int side() { return static_cast<int>(threadIdx.x) / matrix::kLanes / 4 * kWide * 16; }

    __device__ void multiply(const UnitSlice<E>& slice) {
#pragma unroll
        for (int k = 0; k < kDepth<E>; k += 16) {
            matrix::FragmentA<E> left[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                matrix::load_shared<matrix::row_major>(left[i], &slice.a[top() + 16 * i][k], kDepth<E> + 8);
            }
#pragma unroll
            for (int j = 0; j < kWide; ++j) {
                matrix::FragmentB<E> right;
                matrix::load_shared<matrix::row_major>(right, &slice.b[k][side() + 16 * j], kColumns + 8);
#pragma unroll
                for (int i = 0; i < 2; ++i) matrix::multiply_accumulate(sums[i][j], left[i], right);
            }
        }
    }
    template <typename Action>
    __device__ void for_each(Action action) {
#pragma unroll
        for (int i = 0; i < 2 * kWide; ++i) {
            const int row = top() + i / kWide * 16, column = side() + i % kWide * 16;
            matrix::for_each(sums[i / kWide][i % kWide],
                             [&](int m, int n, float& sum) { action(row + m, column + n, sum); });
        }
    }
};

// Part blockIdx.z of the sums, times `factor`.
template <typename E, typename C>
__global__ void __launch_bounds__(kThreads, 2)
    product_kernel(const E* a, const E* b, C* c, float factor, Sizes sizes) {
    constexpr bool units = sizeof(E) == 2;
    __shared__ std::conditional_t<units, UnitSlice<E>, ThreadSlice> slices[2];
    const int64_t top = int64_t{blockIdx.x} * kRows, side = int64_t{blockIdx.y} * kColumns;
    const int64_t begin = blockIdx.z * sizes.part;
    const int64_t end = begin + sizes.part < sizes.depth ? begin + sizes.part : sizes.depth;
    std::conditional_t<units, UnitSums<E>, ThreadSums> sums;
    Underway<E> next;
    next.fetch(a, b, top, side, begin, end, sizes);
    next.keep(slices[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = begin; k < end; k += kDepth<E>, now = 1 - now) {
        next.fetch(a, b, top, side, k + kDepth<E>, end, sizes);  // zeros after the last slice
        sums.multiply(slices[now]);
        next.keep(slices[1 - now]);
        __syncthreads();
    }
    c += blockIdx.z * sizes.rows * sizes.columns;
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < sizes.rows && n < sizes.columns) c[m * sizes.columns + n] = static_cast<C>(sum * factor);
    });
}

template <typename E>
__global__ void add_kernel(const float* sums, E* c, int64_t parts, int64_t count) {
    const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= count) return;
    float sum = 0.0f;
    for (int64_t part = 0; part < (parts < 32 ? parts : 32); ++part) sum += sums[part * count + at];
    c[at] = static_cast<E>(sum + sum);
}

static int64_t pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

// How long a part is: a multiple of a slice. Many blocks need no parts.
static int64_t part_length(int64_t M, int64_t N, int64_t K) {
    const int64_t parts = M * N < kManyResults ? pieces(K, kPart) : 1;
    return pieces(pieces(K, parts), kDepth<T>) * kDepth<T>;
}

extern "C" size_t simple_matmul_workspace(int64_t M, int64_t N, int64_t K) {
    const int64_t parts = pieces(K, part_length(M, N, K));
    return parts == 1 ? 0 : parts * M * N * sizeof(float);
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K, void* workspace,
                                    hipStream_t stream) {
    const Sizes sizes{M, N, K, part_length(M, N, K)};
    const int64_t parts = pieces(K, sizes.part);
    const dim3 grid(pieces(M, kRows), pieces(N, kColumns), parts);
    if (parts == 1) {
        product_kernel<<<grid, kThreads, 0, stream>>>(a, b, c, 2.0f, sizes);
        return hipGetLastError();
    }
    float* sums = static_cast<float*>(workspace);
    product_kernel<<<grid, kThreads, 0, stream>>>(a, b, sums, 1.0f, sizes);
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    add_kernel<<<pieces(M * N, kThreads), kThreads, 0, stream>>>(sums, c, parts, M * N);
    return hipGetLastError();
}
