// Layer normalization that reads a row once: up to 32768 elements stay in the registers of 32, 256 or 1024
// threads, moved 16 bytes at a time where every row starts on such a boundary. A longer row is read three times
// by one block, from the second time out of the cache.
#include "task.h"

#include <math.h>

constexpr int kGroup = 32;  // lanes that shuffle: a wave, or half of one

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <int V, typename E>
__device__ __forceinline__ void load(const E* from, float (&values)[V]) {
    const Pack<E, V> pack = *reinterpret_cast<const Pack<E, V>*>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) values[i] = static_cast<float>(pack.element[i]);
}

// What every row shares.
template <typename E>
struct Layer {
    const E* __restrict__ gain;
    const E* __restrict__ bias;
    float eps;
};

template <int V, typename E>
__device__ __forceinline__ void store(E* to, const Layer<E>& layer, int first, const float (&values)[V], float mean,
                                      float factor) {
    float gain[V], bias[V];
    load<V>(layer.gain + first, gain);
    load<V>(layer.bias + first, bias);
    Pack<E, V> pack;
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = static_cast<E>(gain[i] * ((values[i] - mean) * factor) + bias[i]);
    *reinterpret_cast<Pack<E, V>*>(to + first) = pack;
}

// The sum over groups of Lanes threads: 32 of them shuffle, more are the whole block and meet in `parts`.
template <int Lanes>
__device__ __forceinline__ float over_group(float value, float* parts) {
    for (int distance = kGroup / 2; distance > 0; distance /= 2) value += __shfl_xor(value, distance, kGroup);
    if constexpr (Lanes > kGroup) {
        if (threadIdx.x % kGroup == 0) parts[threadIdx.x / kGroup] = value;
        __syncthreads();
        value = parts[threadIdx.x % (Lanes / kGroup)];
        for (int distance = Lanes / kGroup / 2; distance > 0; distance /= 2) {
            value += __shfl_xor(value, distance, kGroup);
        }
    }
    return value;
}

// Lanes threads a row, each with Slots packs of V elements in registers.
template <int V, int Slots, int Lanes, typename E>
__global__ void __launch_bounds__(Lanes == kGroup ? 128 : Lanes)
    rows_in_registers(const E* __restrict__ x, Layer<E> layer, E* __restrict__ y, int rows, int length) {
    __shared__ float parts[2][Lanes / kGroup];  // one array a sum, so that one barrier does for each
    const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / Lanes) + threadIdx.x / Lanes;
    if (index >= rows) return;  // whole groups, and only where a group needs no barrier
    const E* from = x + index * length;
    const int begin = static_cast<int>(threadIdx.x % Lanes) * V;
    float values[Slots][V];
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
        const int first = begin + s * Lanes * V;
        if (first < length) {
            load<V>(from + first, values[s]);
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) values[s][i] = 0.0f;
        }
    }
#pragma unroll
    for (int s = 0; s < Slots; ++s) {  // apart from the loads, so that all of them are on their way together
#pragma unroll
        for (int i = 0; i < V; ++i) sum += values[s][i];
    }
    const float mean = over_group<Lanes>(sum, parts[0]) / length;
    float squares = 0.0f;
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
        if (begin + s * Lanes * V >= length) continue;
#pragma unroll
        for (int i = 0; i < V; ++i) squares = fmaf(values[s][i] - mean, values[s][i] - mean, squares);
    }
    const float factor = 1.0f / (sqrtf(over_group<Lanes>(squares, parts[1]) / (length - 1)) + layer.eps);
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
        const int first = begin + s * Lanes * V;
        if (first < length) store<V>(y + index * length, layer, first, values[s], mean, factor);
    }
}

// A block a row of any length.
template <int V, int Lanes, typename E>
__global__ void __launch_bounds__(Lanes)
    long_rows(const E* __restrict__ x, Layer<E> layer, E* __restrict__ y, int length) {
    __shared__ float parts[2][Lanes / kGroup];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
    const int begin = static_cast<int>(threadIdx.x) * V;
    float values[V];
    float sum = 0.0f;
#pragma unroll 4
    for (int first = begin; first < length; first += Lanes * V) {
        load<V>(x + start + first, values);
#pragma unroll
        for (int i = 0; i < V; ++i) sum += values[i];
    }
    const float mean = over_group<Lanes>(sum, parts[0]) / length;
    float squares = 0.0f;
#pragma unroll 4
    for (int first = begin; first < length; first += Lanes * V) {
        load<V>(x + start + first, values);
#pragma unroll
        for (int i = 0; i < V; ++i) squares = fmaf(values[i] - mean, values[i] - mean, squares);
    }
    const float factor = 1.0f / (sqrtf(over_group<Lanes>(squares, parts[1]) / (length - 1)) + layer.eps);
#pragma unroll 4
    for (int first = begin; first < length; first += Lanes * V) {
        load<V>(x + start + first, values);
        store<V>(y + start, layer, first, values, mean, factor);
    }
}

// `Each`: elements of the row that a thread holds.
template <int V, int Each, int Lanes>
void launch(const T* x, const Layer<T>& layer, T* y, int rows, int length, hipStream_t stream) {
    constexpr int kThreads = Lanes == kGroup ? 128 : Lanes, kRows = kThreads / Lanes;
    rows_in_registers<V, Each / V, Lanes>
        <<<(rows + kRows - 1) / kRows, kThreads, 0, stream>>>(x, layer, y, rows, length);
}

template <int V>
hipError_t normalize(const T* x, const Layer<T>& layer, T* y, int rows, int length, hipStream_t stream) {
    if (length <= 8 * 32) {
        launch<V, 8, 32>(x, layer, y, rows, length, stream);
    } else if (length <= 32 * 32) {
        launch<V, 32, 32>(x, layer, y, rows, length, stream);
    } else if (length <= 8 * 256) {
        launch<V, 8, 256>(x, layer, y, rows, length, stream);
    } else if (length <= 16 * 256) {
        launch<V, 16, 256>(x, layer, y, rows, length, stream);
    } else if (length <= 32 * 256) {
        launch<V, 32, 256>(x, layer, y, rows, length, stream);
    } else if (length <= 16 * 1024) {
        launch<V, 16, 1024>(x, layer, y, rows, length, stream);
    } else if (length <= 32 * 1024) {
        launch<V, 32, 1024>(x, layer, y, rows, length, stream);
    } else {
        long_rows<V, 1024><<<rows, 1024, 0, stream>>>(x, layer, y, length);
    }
    return hipGetLastError();
}

extern "C" hipError_t layer_normalization(const T* x, const T* gain, const T* bias, float eps, T* y, int64_t M,
                                          int64_t N, hipStream_t stream) {
    constexpr int kV = 16 / sizeof(T);
    const Layer<T> layer{gain, bias, eps};
    const int rows = static_cast<int>(M), length = static_cast<int>(N);
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(gain) |
                                reinterpret_cast<uintptr_t>(bias) | reinterpret_cast<uintptr_t>(y);
    const bool aligned = addresses % 16 == 0 && length % kV == 0;
    return aligned ? normalize<kV>(x, layer, y, rows, length, stream)
                   : normalize<1>(x, layer, y, rows, length, stream);
}
