// SiLU, 16 bytes an access and several accesses in flight a thread; what is left over goes element by
// element.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kInFlight = 2;

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <typename E>
__device__ __forceinline__ E activated(E element) {
    const float value = static_cast<float>(element);
    return static_cast<E>(__fdividef(value, 1.0f + __expf(-value)));
}

template <int V, typename E>
__device__ __forceinline__ Pack<E, V> activated(Pack<E, V> pack) {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = activated(pack.element[i]);
    return pack;
}

// `packs` full packs, then `count - packs * V` single elements, which the first block takes.
template <int V, typename E>
__global__ void __launch_bounds__(kThreads)
    silu_kernel(const E* __restrict__ x, E* __restrict__ y, int64_t packs, int64_t count) {
    const Pack<E, V>* from = reinterpret_cast<const Pack<E, V>*>(x);
    Pack<E, V>* to = reinterpret_cast<Pack<E, V>*>(y);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kInFlight) + threadIdx.x;
    if (first + (kInFlight - 1) * kThreads < packs) {
        Pack<E, V> held[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) held[i] = from[first + i * kThreads];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) to[first + i * kThreads] = activated(held[i]);
    } else {
        for (int64_t at = first; at < packs && at < first + kInFlight * kThreads; at += kThreads) {
            to[at] = activated(from[at]);
        }
    }
    const int64_t rest = packs * V + threadIdx.x;
    if (blockIdx.x == 0 && rest < count) y[rest] = activated(x[rest]);
}

template <int V>
hipError_t launch(const T* x, T* y, int64_t count, hipStream_t stream) {
    const int64_t packs = count / V;
    const int64_t blocks = packs / (kThreads * kInFlight) + 1;
    silu_kernel<V><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, y, packs, count);
    return hipGetLastError();
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
    return aligned ? launch<16 / sizeof(T)>(x, y, M * N, stream) : launch<1>(x, y, M * N, stream);
}
