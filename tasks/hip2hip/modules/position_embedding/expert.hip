// Learned position embeddings: a thread holds the table's values for one pack and adds them to the packs of up to eight
// sequences, in accesses of 16 bytes.
//
// The baseline computes one element a thread. It finds the row by a 64-bit division, of some 70 instructions, and reads
// the table anew for every sequence: three accesses of 2 or 4 bytes an element. Here the table is read once in eight
// sequences and there is no division, only one 32-bit remainder a thread.
//
// The packs of a sequence are at the same places of the next one only where its length is a multiple of a pack. So the
// unit that repeats is a period: as many sequences as make a multiple of a pack, and enough of them to fill blocks.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kPeriods = 8;
constexpr int kInFlight = 4;
constexpr int64_t kLeastPacks = 16 * kThreads;

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <int V, typename E>
__device__ __forceinline__ Pack<E, V> sum(Pack<E, V> pack, const float (&added)[V]) {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = static_cast<E>(static_cast<float>(pack.element[i]) + added[i]);
    return pack;
}

// Reads the table's V values from `place` on, which goes on at the first row after the last one of a sequence.
template <int V, typename E>
__device__ __forceinline__ void read_rows(const E* rows, unsigned place, unsigned of_sequence, bool whole,
                                          float (&added)[V]) {
    if (whole) {
        const Pack<E, V> pack = *reinterpret_cast<const Pack<E, V>*>(rows + place);
#pragma unroll
        for (int i = 0; i < V; ++i) added[i] = static_cast<float>(pack.element[i]);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        added[i] = static_cast<float>(rows[place]);
        place = place + 1 == of_sequence ? 0 : place + 1;
    }
}

// A period has `period` packs, x and y have `packs`, then `count - packs * V` single elements.
// `whole`: a pack of a sequence is also an aligned one of the table.
template <int V, typename E>
__global__ void __launch_bounds__(kThreads)
    add_rows_kernel(const E* __restrict__ x, const E* __restrict__ rows, E* __restrict__ y, unsigned of_sequence,
                    unsigned period, unsigned packs, unsigned count, bool whole) {
    const Pack<E, V>* from = reinterpret_cast<const Pack<E, V>*>(x);
    Pack<E, V>* to = reinterpret_cast<Pack<E, V>*>(y);
    const unsigned rest = packs * V + threadIdx.x;
    if (blockIdx.x + blockIdx.y == 0 && rest < count) {
        y[rest] = static_cast<E>(static_cast<float>(x[rest]) + static_cast<float>(rows[rest % of_sequence]));
    }
    const unsigned own = blockIdx.x * kThreads + threadIdx.x;
    if (own >= period) return;
    float added[V];
    read_rows(rows, own * V % of_sequence, of_sequence, whole, added);
    const unsigned first = blockIdx.y * kPeriods * period + own;
#pragma unroll
    for (int done = 0; done < kPeriods; done += kInFlight) {
        Pack<E, V> held[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
            const unsigned at = first + (done + i) * period;
            if (at < packs) held[i] = from[at];
        }
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
            const unsigned at = first + (done + i) * period;
            if (at < packs) to[at] = sum(held[i], added);
        }
    }
}

template <int V>
hipError_t launch(const T* x, const T* rows, T* y, int64_t sequences, int64_t of_sequence, hipStream_t stream) {
    int64_t group = 1;
    while (group < sequences && (group * of_sequence % V != 0 || group * of_sequence < kLeastPacks * V)) group *= 2;
    const int64_t count = sequences * of_sequence;
    const int64_t packs = count / V;
    const int64_t period = group < sequences ? group * of_sequence / V : packs;
    const int64_t periods = period > 0 ? (packs + period - 1) / period : 1;
    const bool whole = of_sequence % V == 0 && reinterpret_cast<uintptr_t>(rows) % (V * sizeof(T)) == 0;
    const dim3 blocks(static_cast<unsigned>(period / kThreads + 1),
                      static_cast<unsigned>((periods + kPeriods - 1) / kPeriods));
    add_rows_kernel<V><<<blocks, kThreads, 0, stream>>>(
        x, rows, y, static_cast<unsigned>(of_sequence), static_cast<unsigned>(period), static_cast<unsigned>(packs),
        static_cast<unsigned>(count), whole);
    return hipGetLastError();
}

extern "C" hipError_t position_embedding(const T* x, const T* table, int64_t start, T* y, int64_t B, int64_t L,
                                         int64_t D, int64_t, hipStream_t stream) {
    const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
    const T* rows = table + start * D;
    return aligned ? launch<16 / sizeof(T)>(x, rows, y, B, L * D, stream) : launch<1>(x, rows, y, B, L * D, stream);
}
