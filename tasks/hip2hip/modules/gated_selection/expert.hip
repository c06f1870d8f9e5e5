// Gated residual in one launch: a tile of y a block, a patch of it in the registers of each thread. The sum runs over
// a's features and then b's into the same registers; the next slices travel from memory while one is multiplied. Gate
// and choice follow where the sums are. A few rows only: a group of lanes a feature, which reads its weights once.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;
constexpr int kSide = 16;      // patches along each side of a tile
constexpr int kDepth = 16;     // features of a step
constexpr int kGroup = 32;     // lanes that shuffle: a wave, or half of one
constexpr int kFewRows = 4;    // that a group sums at once

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <typename E>
struct Layer {
    const E *a, *b, *weight, *bias;
    E* y;
    int64_t rows, features;
    bool whole;  // whether packs of 8 elements that start at multiples of 8 features are aligned in all of them
};

__device__ __forceinline__ float chosen(float sum, float a, float b) {
    const float gate = 1.0f / (1.0f + __expf(-sum));
    return gate * a + (1.0f - gate) * b;
}

// Elements first … first + V - 1 of a line of `length`, zero past its end.
template <int V, typename E>
__device__ __forceinline__ Pack<E, V> load(const E* line, int64_t first, int64_t length, bool whole) {
    if (whole && first + V <= length) return *reinterpret_cast<const Pack<E, V>*>(line + first);
    Pack<E, V> pack;
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = first + i < length ? line[first + i] : static_cast<E>(0.0f);
    return pack;
}

// Kept × Kept elements of a Tile × Tile piece for each thread, in squares of W × W that lie kApart from each other, so
// that neighbouring threads read neighbouring words of shared memory. V elements of each slice are a thread's to bring.
template <int Tile>
struct Layout {
    static constexpr int Kept = Tile / kSide, W = Kept < 4 ? Kept : 4;
    static constexpr int kPieces = Kept / W, kApart = Tile / kPieces, V = Tile * kDepth / kThreads;
};

template <int Tile>
struct Slices {
    alignas(16) float rows[kDepth][Tile + 4];
    alignas(16) float gates[kDepth][Tile + 4];
};

// A thread's part of the next slices, on its way from memory.
template <typename E, int Tile>
struct Staged {
    static constexpr int V = Layout<Tile>::V;
    Pack<E, V> input, weight;

    // Of step `step`: a's features come first, then b's.
    __device__ __forceinline__ void fetch(const Layer<E>& layer, int64_t step, int64_t steps) {
        const bool of_b = step >= steps;
        const int64_t first = (step - (of_b ? steps : 0)) * kDepth + threadIdx.x / Tile * V;
        const int64_t row = int64_t{blockIdx.x} * Tile + threadIdx.x % Tile;
        const int64_t gate = int64_t{blockIdx.y} * Tile + threadIdx.x % Tile;
        const int64_t length = layer.features;
        input = load<V>((of_b ? layer.b : layer.a) + row * length, first, row < layer.rows ? length : 0, layer.whole);
        weight = load<V>(layer.weight + (2 * gate + of_b) * length, first, gate < length ? length : 0, layer.whole);
    }
    __device__ __forceinline__ void keep(Slices<Tile>& slices) const {
        const int line = threadIdx.x % Tile, depth = threadIdx.x / Tile * V;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            slices.rows[depth + i][line] = static_cast<float>(input.element[i]);
            slices.gates[depth + i][line] = static_cast<float>(weight.element[i]);
        }
    }
};

template <int Tile, int Kept>
__device__ __forceinline__ void multiply(const Slices<Tile>& slices, float (&sums)[Kept][Kept], int tx, int ty) {
    using L = Layout<Tile>;
    constexpr int W = L::W;
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
        Pack<float, W> down[L::kPieces], across[L::kPieces];
#pragma unroll
        for (int p = 0; p < L::kPieces; ++p) {
            down[p] = *reinterpret_cast<const Pack<float, W>*>(&slices.rows[d][p * L::kApart + ty * W]);
            across[p] = *reinterpret_cast<const Pack<float, W>*>(&slices.gates[d][p * L::kApart + tx * W]);
        }
#pragma unroll
        for (int i = 0; i < Kept; ++i) {
#pragma unroll
            for (int j = 0; j < Kept; ++j) {
                sums[i][j] = fmaf(down[i / W].element[i % W], across[j / W].element[j % W], sums[i][j]);
            }
        }
    }
}

// W elements of a row side by side.
template <int W, typename E>
__device__ __forceinline__ void choose(const Layer<E>& layer, int64_t row, int64_t column, const float* sums) {
    const int64_t length = layer.features, start = row * length;
    const Pack<E, W> a = load<W>(layer.a + start, column, length, layer.whole);
    const Pack<E, W> b = load<W>(layer.b + start, column, length, layer.whole);
    const Pack<E, W> bias = load<W>(layer.bias, column, length, layer.whole);
    Pack<E, W> y;
#pragma unroll
    for (int j = 0; j < W; ++j) {
        const float sum = sums[j] + static_cast<float>(bias.element[j]);
        y.element[j] = static_cast<E>(chosen(sum, static_cast<float>(a.element[j]), static_cast<float>(b.element[j])));
    }
    if (layer.whole && column + W <= length) {
        *reinterpret_cast<Pack<E, W>*>(layer.y + start + column) = y;
        return;
    }
#pragma unroll
    for (int j = 0; j < W; ++j) {
        if (column + j < length) layer.y[start + column + j] = y.element[j];
    }
}

template <int Tile, typename E>
__global__ void __launch_bounds__(kThreads, 2) tile_kernel(Layer<E> layer) {
    using L = Layout<Tile>;
    __shared__ Slices<Tile> slices;
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
    const int64_t steps = (layer.features + kDepth - 1) / kDepth;
    float sums[L::Kept][L::Kept] = {};
    Staged<E, Tile> next;
    next.fetch(layer, 0, steps);
    for (int64_t step = 0; step < 2 * steps; ++step) {
        next.keep(slices);
        __syncthreads();
        if (step + 1 < 2 * steps) next.fetch(layer, step + 1, steps);
        multiply<Tile>(slices, sums, tx, ty);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < L::Kept; ++i) {
        const int64_t row = int64_t{blockIdx.x} * Tile + i / L::W * L::kApart + ty * L::W + i % L::W;
        if (row >= layer.rows) continue;
#pragma unroll
        for (int p = 0; p < L::kPieces; ++p) {
            const int64_t column = int64_t{blockIdx.y} * Tile + p * L::kApart + tx * L::W;
            choose<L::W>(layer, row, column, &sums[i][p * L::W]);
        }
    }
}

// The products of V features of each row, a's and b's, with one gate's weights.
template <int V, typename E>
__device__ __forceinline__ void accumulate(const Layer<E>& layer, const E* weight, int64_t top, int64_t k,
                                           float (&sums)[kFewRows]) {
    const int64_t length = layer.features;
    const Pack<E, V> of_a = *reinterpret_cast<const Pack<E, V>*>(weight + k);
    const Pack<E, V> of_b = *reinterpret_cast<const Pack<E, V>*>(weight + length + k);
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) {
        const int64_t row = top + r < layer.rows ? top + r : layer.rows - 1;
        const Pack<E, V> a = *reinterpret_cast<const Pack<E, V>*>(layer.a + row * length + k);
        const Pack<E, V> b = *reinterpret_cast<const Pack<E, V>*>(layer.b + row * length + k);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            sums[r] = fmaf(static_cast<float>(a.element[i]), static_cast<float>(of_a.element[i]), sums[r]);
            sums[r] = fmaf(static_cast<float>(b.element[i]), static_cast<float>(of_b.element[i]), sums[r]);
        }
    }
}

// A group of lanes a feature, kFewRows rows at once. No barrier, so a group may leave early.
template <int V, typename E>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(Layer<E> layer) {
    const int lane = threadIdx.x % kGroup;
    const int64_t feature = int64_t{blockIdx.x} * (kThreads / kGroup) + threadIdx.x / kGroup;
    const int64_t top = int64_t{blockIdx.y} * kFewRows, length = layer.features;
    if (feature >= length) return;
    const E* weight = layer.weight + feature * 2 * length;
    float sums[kFewRows] = {};
#pragma unroll 2
    for (int64_t k = lane * V; k < length; k += kGroup * V) accumulate<V>(layer, weight, top, k, sums);
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) {
        for (int distance = kGroup / 2; distance > 0; distance /= 2) {
            sums[r] += __shfl_xor(sums[r], distance, kGroup);
        }
        if (lane == r && top + r < layer.rows) {
            const int64_t at = (top + r) * length + feature;
            const float sum = sums[r] + static_cast<float>(layer.bias[feature]);
            layer.y[at] = static_cast<E>(chosen(sum, static_cast<float>(layer.a[at]), static_cast<float>(layer.b[at])));
        }
    }
}

static unsigned parts(int64_t size, int64_t part) { return static_cast<unsigned>((size + part - 1) / part); }

static hipError_t few_rows(const Layer<T>& layer, hipStream_t stream) {
    const dim3 grid(parts(layer.features, kThreads / kGroup), parts(layer.rows, kFewRows));
    if (layer.whole) {
        few_rows_kernel<16 / sizeof(T)><<<grid, kThreads, 0, stream>>>(layer);
    } else {
        few_rows_kernel<1><<<grid, kThreads, 0, stream>>>(layer);
    }
    return hipGetLastError();
}

template <int Tile>
static hipError_t tiles(const Layer<T>& layer, hipStream_t stream) {
    const dim3 grid(parts(layer.rows, Tile), parts(layer.features, Tile));
    tile_kernel<Tile><<<grid, kThreads, 0, stream>>>(layer);
    return hipGetLastError();
}

static bool aligned(const T* tensor) { return reinterpret_cast<uintptr_t>(tensor) % sizeof(Pack<T, 8>) == 0; }

extern "C" hipError_t gated_selection(const T* a, const T* b, const T* weight, const T* bias, T* y, int64_t M,
                                      int64_t D, hipStream_t stream) {
    const bool whole = D % 8 == 0 && aligned(a) && aligned(b) && aligned(weight) && aligned(bias) && aligned(y);
    const Layer<T> layer{a, b, weight, bias, y, M, D, whole};
    if (M <= 2 * kFewRows) return few_rows(layer, stream);
    const auto blocks = [&](int64_t tile) { return ((M + tile - 1) / tile) * ((D + tile - 1) / tile); };
    if (blocks(128) >= 128) return tiles<128>(layer, stream);
    if (blocks(64) >= 128) return tiles<64>(layer, stream);
    return tiles<32>(layer, stream);  // few tiles: rather more blocks than more work for each
}
