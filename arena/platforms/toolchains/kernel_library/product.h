// A matrix product for baseline kernels: slices of both operands in shared memory, tiles of 64 × 64 or 128 × 128
// results a block, summed in float32. Where an operand has 16 bits and there are many results, the other is rounded to
// its type and matrix units multiply; else a thread has 16 or 64 results. Nothing is loaded ahead, or in vectors.
// A candidate may include it as "product.h", or write its own.
#ifndef ARENA_PRODUCT_H
#define ARENA_PRODUCT_H

#include "matrix.h"

#include <type_traits>

// A batch of matrices: element (z, m, n) lies at data[z * batch + m * row + n * column].
template <typename E>
struct Matrices {
    E* data;
    int64_t batch, row, column;
};

// What is stored for the float32 sum of element (z, m, n): by itself the sum; see WithBias for another.
struct Plain {
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return sum; }
};

constexpr int kProductThreads = 256;
constexpr int kProductMany = 256;          // large tiles that fill a device
constexpr int64_t kUnitResults = 1 << 16;  // at least: few results may cancel, and cost nothing in float32

// What a thread has of a tile of results in float32: 4 × 4 elements that lie side by side, and with large tiles three
// more such squares, 64 apart, so that a wave reads neighbouring words of shared memory.
template <int Tile>
struct ThreadSums {
    static constexpr int kTile = Tile, kDepth = 16, kEach = Tile / 16;
    // A slice of an operand: for each k, lines side by side. Lines are the rows of a or the columns of b.
    struct alignas(16) Slice {
        float value[kDepth][Tile + 4];
        __device__ void set(int line, int k, float element) { value[k][line] = element; }
    };
    float sums[kEach][kEach] = {};

    __device__ static int row(int i) { return i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4; }
    __device__ static int column(int j) { return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4; }
    __device__ __forceinline__ void add(const Slice& left, const Slice& right) {
#pragma unroll 4  // more would take registers that a second block needs
        for (int k = 0; k < kDepth; ++k) {
            float of_a[kEach], of_b[kEach];
#pragma unroll
            for (int i = 0; i < kEach; i += 4) {  // four words at once
                const auto down = *reinterpret_cast<const matrix::Pack<4>*>(&left.value[k][row(i)]);
                const auto across = *reinterpret_cast<const matrix::Pack<4>*>(&right.value[k][column(i)]);
                __builtin_memcpy(of_a + i, down.word, sizeof down);
                __builtin_memcpy(of_b + i, across.word, sizeof across);
            }
#pragma unroll
            for (int i = 0; i < kEach * kEach; ++i) sums[i / kEach][i % kEach] += of_a[i / kEach] * of_b[i % kEach];
        }
    }
    // action(row, column, sum) for each element of the tile that this thread has.
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
            for (int j = 0; j < kEach; ++j) action(row(i), column(j), sums[i][j]);
        }
    }
};

// What a wave has of it on matrix units, which multiply elements of T: two rows of waves share a tile, and each wave has
// kDown × kAcross tiles of 16 × 16.
template <int Tile, typename T>
struct UnitSums {
    static constexpr int kTile = Tile, kDepth = 32, kStride = kDepth + 8;  // 16 bytes more: other banks for each line
    static constexpr int kWide = kProductThreads / matrix::kLanes / 2, kDown = Tile / 32, kAcross = Tile / 16 / kWide;
    // For each line, its k side by side.
    struct alignas(16) Slice {
        T value[Tile][kStride];
        __device__ void set(int line, int k, float element) { value[line][k] = static_cast<T>(element); }
    };
    matrix::Accumulator sums[kDown * kAcross];

    __device__ static int top() { return static_cast<int>(threadIdx.x) / matrix::kLanes / kWide * kDown * 16; }
    __device__ static int side() { return static_cast<int>(threadIdx.x) / matrix::kLanes % kWide * kAcross * 16; }
    __device__ __forceinline__ void add(const Slice& left, const Slice& right) {
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            matrix::FragmentA<T> of_a[kDown];
            matrix::FragmentB<T> of_b[kAcross];
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
                matrix::load_shared<matrix::row_major>(of_a[i], &left.value[top() + 16 * i][k], kStride);
            }
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                matrix::load_shared<matrix::column_major>(of_b[j], &right.value[side() + 16 * j][k], kStride);
            }
#pragma unroll
            for (int t = 0; t < kDown * kAcross; ++t) {
                matrix::multiply_accumulate(sums[t], of_a[t / kAcross], of_b[t % kAcross]);
            }
        }
    }
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
#pragma unroll
        for (int t = 0; t < kDown * kAcross; ++t) {
            matrix::for_each(sums[t], [&](int row, int column, float& sum) {
                action(top() + t / kAcross * 16 + row, side() + t % kAcross * 16 + column, sum);
            });
        }
    }
};

// The slice at `from`, of which `lines` and `depth` are left, zero after them. Threads side by side read along the
// dimension that is dense.
template <typename Sums, typename E>
__device__ __forceinline__ void load_slice(typename Sums::Slice& slice, const E* from, int64_t line_stride, int64_t depth_stride,
                           int64_t lines, int64_t depth) {
    constexpr int Tile = Sums::kTile, Depth = Sums::kDepth;
    const bool along_depth = depth_stride == 1 || line_stride != 1;
    const int thread = threadIdx.x, line = along_depth ? thread / Depth : thread % Tile;
    const int k = along_depth ? thread % Depth : thread / Tile;
    const int next_line = along_depth ? kProductThreads / Depth : 0;
    const int next_k = along_depth ? 0 : kProductThreads / Tile;
    const int64_t step = next_line * line_stride + next_k * depth_stride;
    from += line * line_stride + k * depth_stride;
#pragma unroll 4
    for (int i = 0; i < Tile * Depth / kProductThreads; ++i) {
        const int at_line = line + i * next_line, at_k = k + i * next_k;
        slice.set(at_line, at_k, at_line < lines && at_k < depth ? static_cast<float>(*from) : 0.0f);
        from += step;
    }
}

// Slices of both operands, in shared memory.
template <typename Sums>
struct Slices {
    typename Sums::Slice left, right;
};

// Adds a @ b to the sums of a tile whose first row is a's and whose first column is b's; `rows` and `columns` are left.
template <typename Sums, typename A, typename B>
__device__ __forceinline__ void add_products(Sums& sums, Slices<Sums>& slices, Matrices<const A> a, Matrices<const B> b, int64_t rows,
                             int64_t columns, int64_t depth) {
    for (int64_t start = 0; start < depth; start += Sums::kDepth) {
        load_slice<Sums>(slices.left, a.data + start * a.column, a.row, a.column, rows, depth - start);
        load_slice<Sums>(slices.right, b.data + start * b.row, b.column, b.row, columns, depth - start);
        __syncthreads();
        sums.add(slices.left, slices.right);
        __syncthreads();
    }
}

template <typename Sums, typename A, typename B, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2)
    product_kernel(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                   int64_t columns, int64_t depth, Finish finish) {
    __shared__ Slices<Sums> slices;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * Sums::kTile;
    const int64_t side = static_cast<int64_t>(blockIdx.y) * Sums::kTile;
    for (int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
        Sums sums;
        const Matrices<const A> from_a{a.data + z * a.batch + top * a.row, 0, a.row, a.column};
        const Matrices<const B> from_b{b.data + z * b.batch + side * b.column, 0, b.row, b.column};
        add_products(sums, slices, from_a, from_b, rows - top, columns - side, depth);
        sums.for_each([&](int row, int column, float sum) {
            const int64_t m = top + row, n = side + column;
            if (m < rows && n < columns) {
                c.data[z * c.batch + m * c.row + n * c.column] = static_cast<C>(finish(sum, z, m, n));
            }
        });
    }
}

// A type as a value.
template <typename S>
struct Type {
    using type = S;
};

// Calls launch(Type<Sums>, grid) for tiles of 128 × 128 where they fill a device, else of 64 × 64. Operands of T are
// multiplied by matrix units where T has 16 bits and there are many results.
template <typename T, typename Launch>
hipError_t with_sums(int64_t batch, int64_t rows, int64_t columns, Launch launch) {
    const bool large = ((rows + 127) / 128) * ((columns + 127) / 128) * batch >= kProductMany;
    const int64_t tile = large ? 128 : 64;
    const dim3 grid(static_cast<unsigned>((rows + tile - 1) / tile), static_cast<unsigned>((columns + tile - 1) / tile),
                    static_cast<unsigned>(batch < 65535 ? batch : 65535));
    if constexpr (sizeof(T) == 2) {
        if (batch * rows * columns >= kUnitResults) {
            large ? launch(Type<UnitSums<128, T>>(), grid) : launch(Type<UnitSums<64, T>>(), grid);
            return hipGetLastError();
        }
    }
    large ? launch(Type<ThreadSums<128>>(), grid) : launch(Type<ThreadSums<64>>(), grid);
    return hipGetLastError();
}

// The type in which a and b are multiplied: what is asked for, else that of an operand of 16 bits, else float. float,
// and few results, leave matrix units out.
template <typename Asked, typename A, typename B>
using UnitOperand = std::conditional_t<
    !std::is_void_v<Asked>, Asked, std::conditional_t<sizeof(A) == 2, A, std::conditional_t<sizeof(B) == 2, B, float>>>;

// c[z] = finish(a[z] @ b[z]) for z below `batch`; a is (rows, depth), b (depth, columns), c (rows, columns).
// product<T>(...) rounds both operands to T where there are many results.
template <typename Asked = void, typename A, typename B, typename C, typename Finish>
hipError_t product(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                   int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    return with_sums<UnitOperand<Asked, A, B>>(batch, rows, columns, [&](auto sums, dim3 grid) {
        product_kernel<typename decltype(sums)::type>
            <<<grid, kProductThreads, 0, stream>>>(a, b, c, batch, rows, columns, depth, finish);
    });
}

// The sum plus a bias by column, then an activation: what a linear layer does at its end.
template <typename E, typename Activation>
struct WithBias {
    const E* bias;
    Activation activation;
    __device__ float operator()(float sum, int64_t, int64_t, int64_t n) const {
        return activation(sum + static_cast<float>(bias[n]));
    }
};

struct Identity {
    __device__ float operator()(float value) const { return value; }
};
struct Relu {
    __device__ float operator()(float value) const { return value > 0.0f ? value : 0.0f; }
};

// y = activation(x @ weight^T + bias), as torch.nn.Linear: x (rows, in), weight (out, in), bias (out), y (rows, out).
template <typename X, typename W, typename Y, typename Activation>
hipError_t linear(const X* x, const W* weight, const W* bias, Y* y, int64_t rows, int64_t out, int64_t in,
                  Activation activation, hipStream_t stream) {
    return product(Matrices<const X>{x, 0, in, 1}, Matrices<const W>{weight, 0, 1, in}, Matrices<Y>{y, 0, out, 1}, 1,
                   rows, out, in, WithBias<W, Activation>{bias, activation}, stream);
}

#endif
