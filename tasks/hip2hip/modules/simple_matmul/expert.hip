// c = a @ (b + b): a tile of c a block, a patch of it in the registers of each thread, two slices of a and b
// in shared memory: one being multiplied, the next being filled from loads that were issued before. The
// doubling is exact, so it is done once, at the end.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kDepth = 8;   // of a step along K
constexpr int kV = 4;       // elements a load

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

// Elements first … first + 3 of a line of `length`, zero past its end. `whole`: such packs are aligned.
template <typename E>
__device__ __forceinline__ Pack<float, kV> load4(const E* line, int64_t first, int64_t length, bool whole) {
    Pack<float, kV> values;
    if (whole && first + kV <= length) {
        const Pack<E, kV> pack = *reinterpret_cast<const Pack<E, kV>*>(line + first);
#pragma unroll
        for (int i = 0; i < kV; ++i) values.element[i] = static_cast<float>(pack.element[i]);
    } else {
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            values.element[i] = first + i < length ? static_cast<float>(line[first + i]) : 0.0f;
        }
    }
    return values;
}

struct Sizes {
    int64_t rows, columns, depth;
    bool whole_a, whole_b, whole_c;  // whether every pack of the matrix is aligned
};

// How the 256 threads share a Tile × Tile piece of c: Kept × Kept elements each, in pieces of W × W that lie
// kApart from each other, so that neighbouring threads read neighbouring words of shared memory.
template <int Tile, int Kept>
struct Layout {
    static constexpr int W = Kept < kV ? Kept : kV;
    static constexpr int kPieces = Kept / W, kApart = Tile / kPieces, kSide = Tile / Kept;
    static constexpr int kPacks = Tile * kDepth / kV, kLoads = (kPacks + kThreads - 1) / kThreads;
    static_assert(kSide * kSide == kThreads, "256 patches a tile");
};

// One step along K of both tiles; a's is transposed and padded.
template <int Tile>
struct Slice {
    alignas(16) float left[kDepth][Tile + kV];
    alignas(16) float right[kDepth][Tile];
};

// A thread's part of the next slice, on its way from memory.
template <int Tile, int Loads>
struct Staged {
    Pack<float, kV> a[Loads], b[Loads];

    template <typename E>
    __device__ __forceinline__ void fetch(const E* from_a, const E* from_b, const Sizes& sizes, int64_t k) {
        const int64_t top = int64_t{blockIdx.y} * Tile, start = int64_t{blockIdx.x} * Tile;
#pragma unroll
        for (int l = 0; l < Loads; ++l) {
            const int pack = threadIdx.x + l * kThreads;
            if (pack >= Tile * kDepth / kV) break;
            const int64_t row = top + pack / (kDepth / kV), depth = k + pack / (Tile / kV);
            a[l] = load4(from_a + row * sizes.depth, k + pack % (kDepth / kV) * kV,
                         row < sizes.rows ? sizes.depth : 0, sizes.whole_a);
            b[l] = load4(from_b + depth * sizes.columns, start + pack % (Tile / kV) * kV,
                         depth < sizes.depth ? sizes.columns : 0, sizes.whole_b);
        }
    }
    __device__ __forceinline__ void keep(Slice<Tile>& slice) const {
#pragma unroll
        for (int l = 0; l < Loads; ++l) {
            const int pack = threadIdx.x + l * kThreads;
            if (pack >= Tile * kDepth / kV) break;
            const int row = pack / (kDepth / kV), depth = pack % (kDepth / kV) * kV;
#pragma unroll
            for (int i = 0; i < kV; ++i) slice.left[depth + i][row] = a[l].element[i];
            float* to = &slice.right[pack / (Tile / kV)][pack % (Tile / kV) * kV];
            *reinterpret_cast<Pack<float, kV>*>(to) = b[l];
        }
    }
};

template <int Tile, int Kept>
__device__ __forceinline__ void multiply(const Slice<Tile>& slice, float (&sums)[Kept][Kept], int tx,
                                         int ty) {
    using L = Layout<Tile, Kept>;
    constexpr int W = L::W;
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
        Pack<float, W> down[L::kPieces], across[L::kPieces];
#pragma unroll
        for (int p = 0; p < L::kPieces; ++p) {
            down[p] = *reinterpret_cast<const Pack<float, W>*>(&slice.left[d][p * L::kApart + ty * W]);
            across[p] = *reinterpret_cast<const Pack<float, W>*>(&slice.right[d][p * L::kApart + tx * W]);
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

template <int Tile, int Kept, typename E>
__device__ __forceinline__ void write(E* c, const float (&sums)[Kept][Kept], const Sizes& sizes, int tx,
                                      int ty) {
    using L = Layout<Tile, Kept>;
    constexpr int W = L::W;
    const int64_t top = int64_t{blockIdx.y} * Tile, start = int64_t{blockIdx.x} * Tile;
#pragma unroll
    for (int i = 0; i < Kept; ++i) {
        const int64_t row = top + i / W * L::kApart + ty * W + i % W;
        if (row >= sizes.rows) continue;
#pragma unroll
        for (int p = 0; p < L::kPieces; ++p) {
            const int64_t column = start + p * L::kApart + tx * W;
            E* to = c + row * sizes.columns + column;
            Pack<E, W> pack;
#pragma unroll
            for (int j = 0; j < W; ++j) pack.element[j] = static_cast<E>(2.0f * sums[i][p * W + j]);
            if (sizes.whole_c && column + W <= sizes.columns) {
                *reinterpret_cast<Pack<E, W>*>(to) = pack;
            } else {
#pragma unroll
                for (int j = 0; j < W; ++j) {
                    if (column + j < sizes.columns) to[j] = pack.element[j];
                }
            }
        }
    }
}

template <int Tile, int Kept, typename E>
__global__ void __launch_bounds__(kThreads, 2)
    matmul_kernel(const E* __restrict__ a, const E* __restrict__ b, E* __restrict__ c, Sizes sizes) {
    using L = Layout<Tile, Kept>;
    __shared__ Slice<Tile> slices[2];
    const int tx = threadIdx.x % L::kSide, ty = threadIdx.x / L::kSide;
    float sums[Kept][Kept] = {};
    Staged<Tile, L::kLoads> next;
    next.fetch(a, b, sizes, 0);
    next.keep(slices[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = 0; k < sizes.depth; k += kDepth, now ^= 1) {
        const bool more = k + kDepth < sizes.depth;
        if (more) next.fetch(a, b, sizes, k + kDepth);
        multiply<Tile, Kept>(slices[now], sums, tx, ty);
        if (more) next.keep(slices[now ^ 1]);
        __syncthreads();
    }
    write<Tile, Kept>(c, sums, sizes, tx, ty);
}

template <int Tile, int Kept>
hipError_t launch(const T* a, const T* b, T* c, const Sizes& sizes, hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>((sizes.columns + Tile - 1) / Tile),
                    static_cast<unsigned>((sizes.rows + Tile - 1) / Tile));
    matmul_kernel<Tile, Kept><<<grid, kThreads, 0, stream>>>(a, b, c, sizes);
    return hipGetLastError();
}

// Whether packs that start at multiples of kV in every line are aligned.
static bool whole(const T* matrix, int64_t line) {
    return line % kV == 0 && reinterpret_cast<uintptr_t>(matrix) % sizeof(Pack<T, kV>) == 0;
}

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K,
                                    hipStream_t stream) {
    const Sizes sizes{M, N, K, whole(a, K), whole(b, N), whole(c, N)};
    const auto tiles = [&](int64_t tile) { return ((M + tile - 1) / tile) * ((N + tile - 1) / tile); };
    if (tiles(128) >= 128) return launch<128, 8>(a, b, c, sizes, stream);
    if (tiles(64) >= 128) return launch<64, 4>(a, b, c, sizes, stream);
    return launch<32, 2>(a, b, c, sizes, stream);  // few tiles: rather more blocks than more work for each
}
