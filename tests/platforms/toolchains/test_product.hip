// `product.h` on operands of several types: c[z][i][j] = the sum over k of a[z][i][k] b[z][k][j], plus 1000 z + 10 i + j.
#include "product.h"

struct Placed {
    __device__ float operator()(float sum, int64_t z, int64_t m, int64_t n) const {
        return sum + static_cast<float>(1000 * z + 10 * m + n);
    }
};

// Of the layouts, 2 turns a and 1 turns b.
template <typename Asked, typename A, typename B>
static hipError_t multiply(const void* a, const void* b, float* c, int64_t batch, int64_t rows, int64_t columns,
                           int64_t depth, int64_t layouts, hipStream_t stream) {
    const Matrices<const A> left{static_cast<const A*>(a), rows * depth, layouts & 2 ? 1 : depth,
                                 layouts & 2 ? rows : 1};
    const Matrices<const B> right{static_cast<const B*>(b), depth * columns, layouts & 1 ? 1 : columns,
                                  layouts & 1 ? depth : 1};
    return product<Asked>(left, right, Matrices<float>{c, rows * columns, columns, 1}, batch, rows, columns, depth,
                          Placed(), stream);
}

extern "C" hipError_t entry(const void* a, const void* b, float* c, int64_t batch, int64_t rows, int64_t columns,
                            int64_t depth, int64_t layouts, int64_t kind, hipStream_t stream) {
    if (kind == 0) return multiply<void, __half, __half>(a, b, c, batch, rows, columns, depth, layouts, stream);
    if (kind == 1) return multiply<void, float, __half>(a, b, c, batch, rows, columns, depth, layouts, stream);
    if (kind == 2) return multiply<void, float, __hip_bfloat16>(a, b, c, batch, rows, columns, depth, layouts, stream);
    if (kind == 3) return multiply<__half, float, float>(a, b, c, batch, rows, columns, depth, layouts, stream);
    return multiply<void, float, float>(a, b, c, batch, rows, columns, depth, layouts, stream);
}
