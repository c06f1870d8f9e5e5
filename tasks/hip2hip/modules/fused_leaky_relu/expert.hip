// Bias, leaky ReLU and scale, 16 bytes an access and two accesses in flight a thread.
//
// The baseline finds each element's channel by two 64-bit divisions, of some 70 instructions each, and moves 2 or 4 bytes
// an access. Here two 32-bit divisions serve a pack of 4 or 8 elements. Where a pack lies in one channel it takes one
// bias; else the channel goes on with the elements, and the bias is loaded anew where it changes. A tensor has at most
// 2^28 elements, so that places fit 32 bits.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kInFlight = 2;

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <typename E>
struct Activation {
    const E* bias;
    float negative_slope;
    float scale;
    unsigned channels;
    unsigned positions;

    __device__ __forceinline__ E operator()(E element, float added) const {
        const float value = static_cast<float>(element) + added;
        return static_cast<E>(scale * (value > 0.0f ? value : negative_slope * value));
    }

    // Activates the elements from `place` on. kWhole: they are of one channel.
    template <bool kWhole, int V>
    __device__ __forceinline__ Pack<E, V> operator()(Pack<E, V> pack, unsigned place) const {
        const unsigned row = place / positions;
        unsigned left = positions - (place - row * positions);
        unsigned channel = row % channels;
        float added = static_cast<float>(bias[channel]);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            pack.element[i] = (*this)(pack.element[i], added);
            if (!kWhole && i + 1 < V && --left == 0) {
                left = positions;
                channel = channel + 1 == channels ? 0 : channel + 1;
                added = static_cast<float>(bias[channel]);
            }
        }
        return pack;
    }
};

// `packs` full packs, then `count - packs * V` single elements, which the first block takes.
template <bool kWhole, int V, typename E>
__global__ void __launch_bounds__(kThreads)
    fused_leaky_relu_kernel(const E* __restrict__ x, Activation<E> activate, E* __restrict__ y, unsigned packs,
                            unsigned count) {
    const Pack<E, V>* from = reinterpret_cast<const Pack<E, V>*>(x);
    Pack<E, V>* to = reinterpret_cast<Pack<E, V>*>(y);
    const unsigned first = blockIdx.x * (kThreads * kInFlight) + threadIdx.x;
    if (first + (kInFlight - 1) * kThreads < packs) {
        Pack<E, V> held[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) held[i] = from[first + i * kThreads];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
            const unsigned at = first + i * kThreads;
            to[at] = activate.template operator()<kWhole>(held[i], at * V);
        }
    } else {
        for (unsigned at = first; at < packs && at < first + kInFlight * kThreads; at += kThreads) {
            to[at] = activate.template operator()<kWhole>(from[at], at * V);
        }
    }
    const unsigned rest = packs * V + threadIdx.x;
    if (blockIdx.x == 0 && rest < count) {
        y[rest] = activate(x[rest], static_cast<float>(activate.bias[rest / activate.positions % activate.channels]));
    }
}

template <bool kWhole, int V>
hipError_t launch(const T* x, Activation<T> activate, T* y, unsigned count, hipStream_t stream) {
    const unsigned packs = count / V;
    const unsigned blocks = packs / (kThreads * kInFlight) + 1;
    fused_leaky_relu_kernel<kWhole, V><<<blocks, kThreads, 0, stream>>>(x, activate, y, packs, count);
    return hipGetLastError();
}

extern "C" hipError_t fused_leaky_relu(const T* x, const T* bias, float negative_slope, float scale, T* y, int64_t B,
                                       int64_t C, int64_t S, hipStream_t stream) {
    constexpr int kWide = 16 / sizeof(T);
    const Activation<T> activate{bias, negative_slope, scale, static_cast<unsigned>(C), static_cast<unsigned>(S)};
    const unsigned count = static_cast<unsigned>(B * C * S);
    const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
    if (!aligned) return launch<true, 1>(x, activate, y, count, stream);
    return S % kWide == 0 ? launch<true, kWide>(x, activate, y, count, stream)
                          : launch<false, kWide>(x, activate, y, count, stream);
}
