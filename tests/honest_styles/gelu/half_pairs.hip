// Pairs of 16-bit floats by the vendor's intrinsics; constants in constant memory; overloads by type.
#include "task.h"

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_vector_types.h>
#include <cmath>

__constant__ float kAlpha[2] = {0.70710678118654752f, 0.79788456080286536f};
__device__ const float kCubic = 0.044715f;

template <typename E>
struct Two;
template <>
struct Two<float> {
    using type = float2;
    static __device__ float2 load(type v) { return v; }
    static __device__ type store(float2 v) { return make_float2(v.x, v.y); }
};
template <>
struct Two<__half> {
    using type = __half2;
    static __device__ float2 load(type v) { return __half22float2(v); }
    static __device__ type store(float2 v) { return __float22half2_rn(v); }
};
template <>
struct Two<__hip_bfloat16> {
    using type = __hip_bfloat162;
    static __device__ float2 load(type v) { return make_float2(__bfloat162float(v.x), __bfloat162float(v.y)); }
    static __device__ type store(float2 v) {
        type out;
        out.x = __float2bfloat16(v.x);
        out.y = __float2bfloat16(v.y);
        return out;
    }
};

template <bool kApproximate>
__device__ __forceinline__ float gelu_of(float x) {
    if constexpr (kApproximate) {
        const float inner = kAlpha[1] * fmaf(kCubic * x * x, x, x);
        return 0.5f * x * (1.0f + tanhf(inner));
    } else {
        return 0.5f * x * (1.0f + erff(x * kAlpha[0]));
    }
}

template <bool kApproximate, typename E>
__global__ void gelu_kernel(const E* __restrict__ x, E* __restrict__ y, int64_t n, bool pairs) {
    using V = typename Two<E>::type;
    const int64_t i = 2 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
    if (i + 1 < n && pairs) {
        float2 v = Two<E>::load(*reinterpret_cast<const V*>(x + i));
        v.x = gelu_of<kApproximate>(v.x);
        v.y = gelu_of<kApproximate>(v.y);
        *reinterpret_cast<V*>(y + i) = Two<E>::store(v);
    } else {
        for (int64_t j = i; j < n && j < i + 2; ++j) y[j] = static_cast<E>(gelu_of<kApproximate>(static_cast<float>(x[j])));
    }
}

extern "C" hipError_t gelu(const T* x, bool approximate, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t n = M * N;
    const dim3 block(128), grid(((n + 1) / 2 + block.x - 1) / block.x);
    const bool pairs = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % (2 * sizeof(T)) == 0;
    auto launch = [&](auto kernel) { kernel<<<grid, block, 0, stream>>>(x, y, n, pairs); };
    if (approximate) launch(gelu_kernel<true, T>);
    else launch(gelu_kernel<false, T>);
    return hipGetLastError();
}
