// Softmax with one read of the row from memory: rows of up to 32768 elements stay in registers, longer ones
// are reduced online (Milakov and Gimelshein, 2018) and read again, by then out of the cache.
//
// A row is cut into slots of V elements that start on 16-byte boundaries whatever the row's own alignment is;
// a slot that sticks out at either end is moved element by element. Where all rows are whole slots, that path is left
// out, since compilers otherwise store part of a slot element by element too.
#include "task.h"

#include <math.h>

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <bool Whole, int V, typename E>
__device__ __forceinline__ void load_slot(const E* row, int first, int length, float (&values)[V]) {
    if (Whole ? first < length : first >= 0 && first + V <= length) {
        const Pack<E, V> pack = *reinterpret_cast<const Pack<E, V>*>(row + first);
#pragma unroll
        for (int i = 0; i < V; ++i) values[i] = static_cast<float>(pack.element[i]);
    } else {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const bool inside = !Whole && first + i >= 0 && first + i < length;
            values[i] = inside ? static_cast<float>(row[first + i]) : -INFINITY;
        }
    }
}

template <bool Whole, int V, typename E>
__device__ __forceinline__ void store_slot(E* row, int first, int length, const float (&values)[V],
                                           float factor) {
    if (Whole ? first < length : first >= 0 && first + V <= length) {
        Pack<E, V> pack;
#pragma unroll
        for (int i = 0; i < V; ++i) pack.element[i] = static_cast<E>(values[i] * factor);
        *reinterpret_cast<Pack<E, V>*>(row + first) = pack;
    } else if (!Whole) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (first + i >= 0 && first + i < length) row[first + i] = static_cast<E>(values[i] * factor);
        }
    }
}

// How many elements a row starts after a boundary of V elements.
template <int V, typename E>
__device__ __forceinline__ int offset_in_slot(const E* row) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(E) % V);
}

template <bool kMax>
__device__ __forceinline__ float combine(float a, float b) {
    return kMax ? fmaxf(a, b) : a + b;
}

// Over groups of Lanes threads: 32 of them shuffle (also in half a wave of 64), more of them are the whole
// block.
template <bool kMax, int Lanes>
__device__ __forceinline__ float over_group(float value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value = combine<kMax>(value, __shfl_xor(value, distance, 32));
    }
    if constexpr (Lanes > 32) {
        __shared__ float parts[Lanes / 32];
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[threadIdx.x % (Lanes / 32)];
        for (int distance = Lanes / 64; distance > 0; distance /= 2) {
            value = combine<kMax>(value, __shfl_xor(value, distance, 32));
        }
    }
    return value;
}

// Lanes threads a row, each with Slots slots in registers.
template <bool Whole, int V, int Slots, int Lanes, typename E>
__global__ void __launch_bounds__(Lanes == 32 ? 128 : Lanes)
    rows_in_registers(const E* __restrict__ x, E* __restrict__ y, int rows, int length) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / Lanes) + threadIdx.x / Lanes;
    if (index >= rows) return;  // whole groups, and only where a group needs no barrier
    const E* from = x + index * length;
    const int begin = static_cast<int>(threadIdx.x % Lanes) * V - (Whole ? 0 : offset_in_slot<V>(from));
    float values[Slots][V];
    float largest = -INFINITY;
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
        load_slot<Whole, V>(from, begin + s * Lanes * V, length, values[s]);
#pragma unroll
        for (int i = 0; i < V; ++i) largest = fmaxf(largest, values[s][i]);
    }
    largest = over_group<true, Lanes>(largest);
    float total = 0.0f;
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            values[s][i] = __expf(values[s][i] - largest);
            total += values[s][i];
        }
    }
    const float factor = 1.0f / over_group<false, Lanes>(total);
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
        store_slot<Whole, V>(y + index * length, begin + s * Lanes * V, length, values[s], factor);
    }
}

// A block a row of any length.
template <int V, int Lanes, typename E>
__global__ void __launch_bounds__(Lanes) rows_online(const E* __restrict__ x, E* __restrict__ y, int length) {
    const E* from = x + static_cast<int64_t>(blockIdx.x) * length;
    E* to = y + static_cast<int64_t>(blockIdx.x) * length;
    const int begin = static_cast<int>(threadIdx.x) * V - offset_in_slot<V>(from);
    float largest = -INFINITY, total = 0.0f;
#pragma unroll 2
    for (int first = begin; first < length; first += Lanes * V) {
        float values[V];
        load_slot<false, V>(from, first, length, values);
        float larger = largest;
#pragma unroll
        for (int i = 0; i < V; ++i) larger = fmaxf(larger, values[i]);
        if (larger == -INFINITY) continue;  // nothing of the row yet
        total *= __expf(largest - larger);
#pragma unroll
        for (int i = 0; i < V; ++i) total += __expf(values[i] - larger);
        largest = larger;
    }
    const float overall = over_group<true, Lanes>(largest);
    const float mine = largest == -INFINITY ? 0.0f : total * __expf(largest - overall);
    const float factor = 1.0f / over_group<false, Lanes>(mine);
#pragma unroll 2
    for (int first = begin; first < length; first += Lanes * V) {
        float values[V];
        load_slot<false, V>(from, first, length, values);
#pragma unroll
        for (int i = 0; i < V; ++i) values[i] = __expf(values[i] - overall);
        store_slot<false, V>(to, first, length, values, factor);
    }
}

constexpr int kV = 16 / sizeof(T);

// `Each`: elements of the row that a thread holds.
template <int Each, int Lanes>
hipError_t launch(const T* x, T* y, int64_t rows, int64_t length, hipStream_t stream) {
    constexpr int kThreads = Lanes == 32 ? 128 : Lanes;
    const int64_t blocks = (rows + kThreads / Lanes - 1) / (kThreads / Lanes);
    const dim3 grid(static_cast<unsigned>(blocks));
    const int all = static_cast<int>(rows), each = static_cast<int>(length);
    if (length % kV == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0) {  // and so is y
        rows_in_registers<true, kV, Each / kV, Lanes><<<grid, kThreads, 0, stream>>>(x, y, all, each);
    } else {
        rows_in_registers<false, kV, Each / kV, Lanes><<<grid, kThreads, 0, stream>>>(x, y, all, each);
    }
    return hipGetLastError();
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const uintptr_t from = reinterpret_cast<uintptr_t>(x), to = reinterpret_cast<uintptr_t>(y);
    if ((from - to) % 16 != 0) {  // no boundary is common to both
        rows_online<1, 256><<<static_cast<unsigned>(M), 256, 0, stream>>>(x, y, static_cast<int>(N));
        return hipGetLastError();
    }
    const bool whole = from % 16 == 0 && N % kV == 0;
    const int64_t reach = whole ? N : N + kV - 1;  // with the most that a row can start after a boundary
    if (reach <= 8 * 32) return launch<8, 32>(x, y, M, N, stream);
    if (reach <= 16 * 32) return launch<16, 32>(x, y, M, N, stream);
    if (reach <= 32 * 32) return launch<32, 32>(x, y, M, N, stream);
    if (reach <= 8 * 256) return launch<8, 256>(x, y, M, N, stream);
    if (reach <= 16 * 256) return launch<16, 256>(x, y, M, N, stream);
    if (reach <= 32 * 256) return launch<32, 256>(x, y, M, N, stream);
    if (reach <= 16 * 1024) return launch<16, 1024>(x, y, M, N, stream);
    if (reach <= 32 * 1024) return launch<32, 1024>(x, y, M, N, stream);
    rows_online<kV, 1024><<<static_cast<unsigned>(M), 1024, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
