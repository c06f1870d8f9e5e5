// c = a @ (b + b): the plain product, doubled as it is stored.
#include "task.h"
#include "product.h"

struct Twice {
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return sum + sum; }
};

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K,
                                    hipStream_t stream) {
    return product(Matrices<const T>{a, 0, K, 1}, Matrices<const T>{b, 0, N, 1}, Matrices<T>{c, 0, N, 1}, 1, M, N, K,
                   Twice(), stream);
}
