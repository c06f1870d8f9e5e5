#include "product.h"

// c[z] = a[z] × b[z], in 16 bits, or with a of float32.
template <typename A, typename B>
static hipError_t multiply(const void* a, const void* b, float* c, int64_t batch, int64_t M, int64_t N, int64_t K,
                           int64_t across, hipStream_t stream) {
    const Matrices<const A> left{static_cast<const A*>(a), M * K, across ? 1 : K, across ? M : 1};
    const Matrices<const B> right{static_cast<const B*>(b), K * N, across ? 1 : N, across ? K : 1};
    return product(left, right, Matrices<float>{c, M * N, N, 1}, batch, M, N, K, Plain(), stream);
}

extern "C" hipError_t entry(const void* a, const void* b, float* c, int64_t batch, int64_t M, int64_t N, int64_t K,
                            int64_t kind, int64_t across, hipStream_t stream) {
    if (kind == 0) return multiply<__half, __half>(a, b, c, batch, M, N, K, across, stream);
    if (kind == 1) return multiply<float, __half>(a, b, c, batch, M, N, K, across, stream);
    return multiply<float, float>(a, b, c, batch, M, N, K, across, stream);
}
