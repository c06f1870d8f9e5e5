// A plain matrix product for starting kernels: 16 × 16 tiles in shared memory, one element of the result a thread.
// A candidate may include it as "product.h", or write its own, which should not be hard to beat.
#ifndef ARENA_PRODUCT_H
#define ARENA_PRODUCT_H

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

constexpr int kProductTile = 16;

using ProductTile = float[kProductTile][kProductTile + 1];

// The tile at (top, left) of matrix z, zero outside; threads side by side read along the dimension that is dense.
template <typename E>
__device__ void load_tile(ProductTile& tile, const Matrices<const E>& from, int64_t z, int64_t top, int64_t left,
                          int64_t rows, int64_t columns) {
    const bool along_rows = from.column == 1 || from.row != 1;
    const int i = along_rows ? threadIdx.y : threadIdx.x, j = along_rows ? threadIdx.x : threadIdx.y;
    const int64_t m = top + i, n = left + j;
    const bool inside = m < rows && n < columns;
    tile[i][j] = inside ? static_cast<float>(from.data[z * from.batch + m * from.row + n * from.column]) : 0.0f;
}

template <typename A, typename B, typename C, typename Finish>
__global__ void product_kernel(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                               int64_t columns, int64_t depth, Finish finish) {
    __shared__ ProductTile left, right;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * kProductTile;
    const int64_t side = static_cast<int64_t>(blockIdx.y) * kProductTile;
    const int64_t m = top + threadIdx.y, n = side + threadIdx.x;
    for (int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
        float sum = 0.0f;
        for (int64_t start = 0; start < depth; start += kProductTile) {
            load_tile(left, a, z, top, start, rows, depth);
            load_tile(right, b, z, start, side, depth, columns);
            __syncthreads();
            for (int k = 0; k < kProductTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
            __syncthreads();
        }
        if (m < rows && n < columns) {
            c.data[z * c.batch + m * c.row + n * c.column] = static_cast<C>(finish(sum, z, m, n));
        }
    }
}

// c[z] = finish(a[z] @ b[z]) for z below `batch`; a is (rows, depth), b (depth, columns), c (rows, columns).
template <typename A, typename B, typename C, typename Finish>
hipError_t product(Matrices<const A> a, Matrices<const B> b, Matrices<C> c, int64_t batch, int64_t rows,
                   int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + kProductTile - 1) / kProductTile); };
    const dim3 grid(tiles(rows), tiles(columns), static_cast<unsigned>(batch < 65535 ? batch : 65535));
    product_kernel<<<grid, dim3(kProductTile, kProductTile), 0, stream>>>(a, b, c, batch, rows, columns, depth, finish);
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
