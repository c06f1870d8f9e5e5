// GELU, the form fixed at compile time, 16 bytes an access and several accesses in flight a thread; what is left over
// goes element by element. Both forms are written with few instructions, since those, not memory, bound float16.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kInFlight = 2;

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

// (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)).
__device__ __forceinline__ float tanh_form(float x) {
    const float twice = x * (1.59576912f + 0.07135482f * x * x);
    return __fdividef(x, 1.0f + __expf(-twice));
}

// erfc(z) for z >= 0 as exp(-z²) times a polynomial in 1 / (1 + p z), wrong by at most 1.5e-7 (Abramowitz and Stegun,
// 7.1.26). With h = x / 2 · erfc(|x| / sqrt(2)), which is small where x is large, y is x - h above zero and h below.
__device__ __forceinline__ float erf_form(float x) {
    const float size = fabsf(x) * 0.70710678f;
    const float t = __fdividef(1.0f, 1.0f + 0.3275911f * size);
    float series = 1.061405429f;
    series = series * t - 1.453152027f;
    series = series * t + 1.421413741f;
    series = series * t - 0.284496736f;
    series = series * t + 0.254829592f;
    const float h = 0.5f * x * series * t * __expf(-size * size);
    return x > 0.0f ? x - h : h;
}

template <bool kTanh, typename E>
__device__ __forceinline__ E activated(E element) {
    const float value = static_cast<float>(element);
    return static_cast<E>(kTanh ? tanh_form(value) : erf_form(value));
}

template <bool kTanh, int V, typename E>
__device__ __forceinline__ Pack<E, V> activated(Pack<E, V> pack) {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = activated<kTanh>(pack.element[i]);
    return pack;
}

// `packs` full packs, then `count - packs * V` single elements, which the first block takes.
template <bool kTanh, int V, typename E>
__global__ void __launch_bounds__(kThreads)
    gelu_kernel(const E* __restrict__ x, E* __restrict__ y, int64_t packs, int64_t count) {
    const Pack<E, V>* from = reinterpret_cast<const Pack<E, V>*>(x);
    Pack<E, V>* to = reinterpret_cast<Pack<E, V>*>(y);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kInFlight) + threadIdx.x;
    if (first + (kInFlight - 1) * kThreads < packs) {
        Pack<E, V> held[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) held[i] = from[first + i * kThreads];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) to[first + i * kThreads] = activated<kTanh>(held[i]);
    } else {
        for (int64_t at = first; at < packs && at < first + kInFlight * kThreads; at += kThreads) {
            to[at] = activated<kTanh>(from[at]);
        }
    }
    const int64_t rest = packs * V + threadIdx.x;
    if (blockIdx.x == 0 && rest < count) y[rest] = activated<kTanh>(x[rest]);
}

template <bool kTanh, int V>
hipError_t launch(const T* x, T* y, int64_t count, hipStream_t stream) {
    const int64_t packs = count / V;
    const unsigned blocks = static_cast<unsigned>(packs / (kThreads * kInFlight) + 1);
    gelu_kernel<kTanh, V><<<blocks, kThreads, 0, stream>>>(x, y, packs, count);
    return hipGetLastError();
}

template <int V>
hipError_t launch(const T* x, bool approximate, T* y, int64_t count, hipStream_t stream) {
    return approximate ? launch<true, V>(x, y, count, stream) : launch<false, V>(x, y, count, stream);
}

extern "C" hipError_t gelu(const T* x, bool approximate, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
    return aligned ? launch<16 / sizeof(T)>(x, approximate, y, M * N, stream)
                   : launch<1>(x, approximate, y, M * N, stream);
}
