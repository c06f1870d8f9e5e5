// c = a @ (b + b). A block has 128 × 64 results, a thread 8 × 4 of them in registers. While it multiplies one slice in
// shared memory, the elements of the next are on their way. Where there are few blocks, the sums are cut into parts
// along K, which a second launch adds up in order. The product is doubled as it is stored.
#define ARENA_WORKSPACE
#include "task.h"

constexpr int kThreads = 256;
constexpr int kRows = 128, kColumns = 64, kDepth = 16;
constexpr int kOfA = kRows * kDepth / kThreads, kOfB = kColumns * kDepth / kThreads;  // elements of a thread
constexpr int64_t kManyResults = 512 * 1024;  // which fill a device
constexpr int64_t kPart = 1024;               // about the length of a part

struct Sizes {
    int64_t rows, columns, depth, part;
};

__device__ inline int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

struct Slice {
    alignas(16) float a[kDepth][kRows + 4];
    alignas(16) float b[kDepth][kColumns + 4];
};

// A thread's elements of a slice on their way into shared memory: of a along K, of b along the rows. After the last row
// or column the last is read again, whose results are not stored; after the end of K, zeros of a.
template <typename E>
struct Underway {
    E a[kOfA], b[kOfB];

    __device__ void fetch(const E* from_a, const E* from_b, int64_t top, int64_t side, int64_t k, int64_t end,
                          const Sizes& sizes) {
#pragma unroll
        for (int i = 0; i < kOfA; ++i) {
            const int64_t m = lesser(top + threadIdx.x / kDepth + i * kThreads / kDepth, sizes.rows - 1);
            const int64_t at = k + threadIdx.x % kDepth;
            a[i] = at < end ? from_a[m * sizes.depth + at] : static_cast<E>(0.0f);
        }
#pragma unroll
        for (int i = 0; i < kOfB; ++i) {
            const int64_t n = lesser(side + threadIdx.x % kColumns, sizes.columns - 1);
            const int64_t at = lesser(k + threadIdx.x / kColumns + i * kThreads / kColumns, end - 1);
            b[i] = from_b[at * sizes.columns + n];
        }
    }
    __device__ void keep(Slice& slice) const {
#pragma unroll
        for (int i = 0; i < kOfA; ++i) {
            slice.a[threadIdx.x % kDepth][threadIdx.x / kDepth + i * kThreads / kDepth] = static_cast<float>(a[i]);
        }
#pragma unroll
        for (int i = 0; i < kOfB; ++i) {
            slice.b[threadIdx.x / kColumns + i * kThreads / kColumns][threadIdx.x % kColumns] = static_cast<float>(b[i]);
        }
    }
};

// Rows are two runs of four, 64 apart.
__device__ inline int row_of(int i) { return i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4; }
__device__ inline int column_of(int j) { return threadIdx.x % 16 * 4 + j; }

__device__ void multiply(const Slice& slice, float (&sums)[8][4]) {
#pragma unroll 4
    for (int k = 0; k < kDepth; ++k) {
        float left[8], right[4];
#pragma unroll
        for (int i = 0; i < 8; ++i) left[i] = slice.a[k][row_of(i)];
#pragma unroll
        for (int j = 0; j < 4; ++j) right[j] = slice.b[k][column_of(j)];
#pragma unroll
        for (int i = 0; i < 32; ++i) sums[i / 4][i % 4] += left[i / 4] * right[i % 4];
    }
}

// Part blockIdx.z of the sums, times `factor`.
template <typename E, typename C>
__global__ void __launch_bounds__(kThreads, 2)
    product_kernel(const E* a, const E* b, C* c, float factor, Sizes sizes) {
    __shared__ Slice slices[2];
    const int64_t top = int64_t{blockIdx.x} * kRows, side = int64_t{blockIdx.y} * kColumns;
    const int64_t begin = blockIdx.z * sizes.part;
    const int64_t end = begin + sizes.part < sizes.depth ? begin + sizes.part : sizes.depth;
    float sums[8][4] = {};
    Underway<E> next;
    next.fetch(a, b, top, side, begin, end, sizes);
    next.keep(slices[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = begin; k < end; k += kDepth, now = 1 - now) {
        next.fetch(a, b, top, side, k + kDepth, end, sizes);  // zeros after the last slice
        multiply(slices[now], sums);
        next.keep(slices[1 - now]);
        __syncthreads();
    }
    c += blockIdx.z * sizes.rows * sizes.columns;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int64_t m = top + row_of(i / 4), n = side + column_of(i % 4);
        if (m < sizes.rows && n < sizes.columns) c[m * sizes.columns + n] = static_cast<C>(sums[i / 4][i % 4] * factor);
    }
}

template <typename E>
__global__ void add_kernel(const float* sums, E* c, int64_t parts, int64_t count) {
    const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= count) return;
    float sum = 0.0f;
    for (int64_t part = 0; part < parts; ++part) sum += sums[part * count + at];
    c[at] = static_cast<E>(sum + sum);
}

static int64_t pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

// How long a part is: a multiple of a slice. Many blocks need no parts.
static int64_t part_length(int64_t M, int64_t N, int64_t K) {
    const int64_t parts = M * N < kManyResults ? pieces(K, kPart) : 1;
    return pieces(pieces(K, parts), kDepth) * kDepth;
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
