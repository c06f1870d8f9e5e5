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

// What is stored for the float32 sum of element (z, m, n): by itself the sum; see with_bias for another.
struct Plain {
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return sum; }
};

constexpr int kProductThreads = 256;  // 16 × 16, each with the sums of 4 × 4 or 8 × 8 elements
constexpr int kProductDepth = 16;     // of a slice in shared memory
constexpr int kProductMany = 256;     // large tiles that fill a device
constexpr int kUnitDepth = 32;        // of a slice that matrix units multiply
constexpr int64_t kUnitResults = 1 << 16;  // at least: few results may cancel, and cost nothing in float32

// A slice of an operand: for each k, lines side by side. Lines are the rows of a or the columns of b.
template <int Tile>
struct alignas(16) ProductSlice {
    float value[kProductDepth][Tile + 4];
};

// The slice at `from`, of which `lines` and `depth` are left, zero after them. Threads side by side read along the
// dimension that is dense.
template <int Tile, typename E>
__device__ void load_slice(ProductSlice<Tile>& slice, const E* from, int64_t line_stride, int64_t depth_stride,
                           int64_t lines, int64_t depth) {
    const bool along_depth = depth_stride == 1 || line_stride != 1;
    const int thread = threadIdx.x, line = along_depth ? thread / kProductDepth : thread % Tile;
    const int k = along_depth ? thread % kProductDepth : thread / Tile;
    const int next_line = along_depth ? kProductThreads / kProductDepth : 0;
    const int next_k = along_depth ? 0 : kProductThreads / Tile;
    const int64_t step = next_line * line_stride + next_k * depth_stride;
    from += line * line_stride + k * depth_stride;
#pragma unroll 4
    for (int i = 0; i < Tile * kProductDepth / kProductThreads; ++i) {
        const int at_line = line + i * next_line, at_k = k + i * next_k;
        slice.value[at_k][at_line] = at_line < lines && at_k < depth ? static_cast<float>(*from) : 0.0f;
        from += step;
    }
}

// Which rows and columns of a tile are a thread's: 4 × 4 elements that lie side by side, and with large tiles three more
// such squares, 64 apart, so that a wave reads neighbouring words of shared memory.
__device__ inline int product_row(int i) { return i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4; }
__device__ inline int product_column(int j) { return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4; }

template <int Tile>
__device__ void multiply_slices(const ProductSlice<Tile>& left, const ProductSlice<Tile>& right,
                                float (&sums)[Tile / 16][Tile / 16]) {
    constexpr int kEach = Tile / 16;
#pragma unroll 4  // more would take registers that a second block needs
    for (int k = 0; k < kProductDepth; ++k) {
        float of_a[kEach], of_b[kEach];
#pragma unroll
        for (int i = 0; i < kEach; i += 4) {  // four words at once
            const auto down = *reinterpret_cast<const matrix::Pack<4>*>(&left.value[k][product_row(i)]);
            const auto across = *reinterpret_cast<const matrix::Pack<4>*>(&right.value[k][product_column(i)]);
            __builtin_memcpy(of_a + i, down.word, sizeof down);
            __builtin_memcpy(of_b + i, across.word, sizeof across);
        }
#pragma unroll
        for (int i = 0; i < kEach * kEach; ++i) sums[i / kEach][i % kEach] += of_a[i / kEach] * of_b[i % kEach];
    }
}

template <int Tile, typename A, typename B, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2)
    product_kernel(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                   int64_t columns, int64_t depth, Finish finish) {
    __shared__ ProductSlice<Tile> left, right;
    constexpr int kEach = Tile / 16;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * Tile, side = static_cast<int64_t>(blockIdx.y) * Tile;
    for (int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
        const A* from_a = a.data + z * a.batch + top * a.row;
        const B* from_b = b.data + z * b.batch + side * b.column;
        float sums[kEach][kEach] = {};
        for (int64_t start = 0; start < depth; start += kProductDepth) {
            load_slice(left, from_a + start * a.column, a.row, a.column, rows - top, depth - start);
            load_slice(right, from_b + start * b.row, b.column, b.row, columns - side, depth - start);
            __syncthreads();
            multiply_slices(left, right, sums);
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kEach * kEach; ++i) {
            const int64_t m = top + product_row(i / kEach), n = side + product_column(i % kEach);
            if (m < rows && n < columns) {
                const float result = finish(sums[i / kEach][i % kEach], z, m, n);
                c.data[z * c.batch + m * c.row + n * c.column] = static_cast<C>(result);
            }
        }
    }
}

// The type in which a and b are multiplied: what is asked for, else that of an operand of 16 bits, else float. float,
// and few results, leave matrix units out.
template <typename Asked, typename A, typename B>
using UnitOperand = std::conditional_t<
    !std::is_void_v<Asked>, Asked, std::conditional_t<sizeof(A) == 2, A, std::conditional_t<sizeof(B) == 2, B, float>>>;

// A slice of an operand for matrix units: for each line, its k side by side, and 16 bytes more, so that what is read at
// once lies in different banks.
template <int Tile, typename T>
struct alignas(16) UnitSlice {
    T value[Tile][kUnitDepth + 8];
};

template <int Tile, typename T, typename E>
__device__ void load_unit_slice(UnitSlice<Tile, T>& slice, const E* from, int64_t line_stride, int64_t depth_stride,
                                int64_t lines, int64_t depth) {
    const bool along_depth = depth_stride == 1 || line_stride != 1;
    const int thread = threadIdx.x, line = along_depth ? thread / kUnitDepth : thread % Tile;
    const int k = along_depth ? thread % kUnitDepth : thread / Tile;
    const int next_line = along_depth ? kProductThreads / kUnitDepth : 0;
    const int next_k = along_depth ? 0 : kProductThreads / Tile;
    const int64_t step = next_line * line_stride + next_k * depth_stride;
    from += line * line_stride + k * depth_stride;
#pragma unroll 4
    for (int i = 0; i < Tile * kUnitDepth / kProductThreads; ++i) {
        const int at_line = line + i * next_line, at_k = k + i * next_k;
        const float element = at_line < lines && at_k < depth ? static_cast<float>(*from) : 0.0f;
        slice.value[at_line][at_k] = static_cast<T>(element);
        from += step;
    }
}

// Two rows of waves share a tile; each wave has kDown × kAcross tiles of 16 × 16.
template <int Tile, typename T, typename A, typename B, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2)
    unit_product_kernel(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                        int64_t columns, int64_t depth, Finish finish) {
    __shared__ UnitSlice<Tile, T> left, right;
    constexpr int kWide = kProductThreads / matrix::kLanes / 2, kDown = Tile / 32, kAcross = Tile / 16 / kWide;
    const int wave = threadIdx.x / matrix::kLanes;
    const int upper = wave / kWide * kDown * 16, first = wave % kWide * kAcross * 16;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * Tile, side = static_cast<int64_t>(blockIdx.y) * Tile;
    for (int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
        const A* from_a = a.data + z * a.batch + top * a.row;
        const B* from_b = b.data + z * b.batch + side * b.column;
        matrix::Accumulator sums[kDown * kAcross];
        for (int64_t start = 0; start < depth; start += kUnitDepth) {
            load_unit_slice(left, from_a + start * a.column, a.row, a.column, rows - top, depth - start);
            load_unit_slice(right, from_b + start * b.row, b.column, b.row, columns - side, depth - start);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < kUnitDepth; k += 16) {
                matrix::FragmentA<T> of_a[kDown];
                matrix::FragmentB<T> of_b[kAcross];
                constexpr int kStride = kUnitDepth + 8;
#pragma unroll
                for (int i = 0; i < kDown; ++i) {
                    matrix::load_shared<matrix::row_major>(of_a[i], &left.value[upper + 16 * i][k], kStride);
                }
#pragma unroll
                for (int j = 0; j < kAcross; ++j) {
                    matrix::load_shared<matrix::column_major>(of_b[j], &right.value[first + 16 * j][k], kStride);
                }
#pragma unroll
                for (int t = 0; t < kDown * kAcross; ++t) {
                    matrix::multiply_accumulate(sums[t], of_a[t / kAcross], of_b[t % kAcross]);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int t = 0; t < kDown * kAcross; ++t) {
            matrix::for_each(sums[t], [&](int row, int column, float& sum) {
                const int64_t m = top + upper + t / kAcross * 16 + row, n = side + first + t % kAcross * 16 + column;
                if (m < rows && n < columns) {
                    c.data[z * c.batch + m * c.row + n * c.column] = static_cast<C>(finish(sum, z, m, n));
                }
            });
        }
    }
}

// Whether tiles of 128 × 128 fill a device.
inline bool large_tiles(int64_t batch, int64_t rows, int64_t columns) {
    return ((rows + 127) / 128) * ((columns + 127) / 128) * batch >= kProductMany;
}

// c[z] = finish(a[z] @ b[z]) for z below `batch`; a is (rows, depth), b (depth, columns), c (rows, columns).
// product<T>(...) rounds both operands to T where there are many results.
template <typename Asked = void, typename A, typename B, typename C, typename Finish>
hipError_t product(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                   int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    const int64_t tile = large_tiles(batch, rows, columns) ? 128 : 64;
    const dim3 grid(static_cast<unsigned>((rows + tile - 1) / tile), static_cast<unsigned>((columns + tile - 1) / tile),
                    static_cast<unsigned>(batch < 65535 ? batch : 65535));
    using T = UnitOperand<Asked, A, B>;
    if constexpr (sizeof(T) == 2) {
        if (batch * rows * columns >= kUnitResults) {
            if (tile == 128) {
                unit_product_kernel<128, T><<<grid, kProductThreads, 0, stream>>>(a, b, c, batch, rows, columns, depth,
                                                                                  finish);
            } else {
                unit_product_kernel<64, T><<<grid, kProductThreads, 0, stream>>>(a, b, c, batch, rows, columns, depth,
                                                                                 finish);
            }
            return hipGetLastError();
        }
    }
    if (tile == 128) {
        product_kernel<128><<<grid, kProductThreads, 0, stream>>>(a, b, c, batch, rows, columns, depth, finish);
    } else {
        product_kernel<64><<<grid, kProductThreads, 0, stream>>>(a, b, c, batch, rows, columns, depth, finish);
    }
    return hipGetLastError();
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
