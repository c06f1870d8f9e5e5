// Batched transpose in three ways. Matrices that are wide both ways go through tiles of 32 words (of 4 bytes) across,
// read and written 16 bytes at a time where rows are aligned so. Matrices with at most 32 rows or columns go through
// long strips, so that no thread waits at the edge of a tile. Where there is little to do, small tiles and one element
// a thread have it done soonest. Elements are moved as bits.
#include "task.h"

#include <algorithm>

constexpr int kThreads = 256;
constexpr int kWords = 32;     // of a tile's row
constexpr int kNarrow = 32;    // the most rows or columns that a strip has
constexpr int kStrip = 4096;   // elements of a strip, and of its padding
constexpr int kShort = 128;    // a strip's length where longer ones would leave processors idle
constexpr int kBlocks = 2048;  // enough for every processor
constexpr int64_t kFew = 8192;  // elements that count as little to do
constexpr int64_t kMaxDepth = 65535;

template <int Bytes>
struct Bits;
template <>
struct Bits<2> {
    using Type = uint16_t;
};
template <>
struct Bits<4> {
    using Type = uint32_t;
};
using U = Bits<sizeof(T)>::Type;

constexpr int kPerWord = 4 / sizeof(U);
constexpr int kPack = 16 / sizeof(U);       // elements of 16 bytes
constexpr int kAcross = kWords * kPerWord;  // elements of a tile's row
constexpr int kDown = 128;                  // rows of a tile
constexpr int kPitch = kWords + 1;          // words from row to row, so that columns lie in different banks

struct alignas(16) Quad {
    uint32_t word[4];
};

struct Place {
    int64_t rows, columns, top, left;
};

// Rows of x into the tile, 16 bytes a thread and all of a thread's reads in flight at once.
__device__ __forceinline__ void read_packed(const U* from, Place at, uint32_t* tile) {
    constexpr int kPacks = kAcross / kPack, kEach = kDown * kPacks / kThreads;
    const int i = threadIdx.x / kPacks, j = threadIdx.x % kPacks;
    const bool inside = at.left + j * kPack < at.columns;
    Quad held[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
        const int64_t row = at.top + i + e * (kThreads / kPacks);
        held[e] = Quad{};
        if (inside && row < at.rows) {
            held[e] = *reinterpret_cast<const Quad*>(from + row * at.columns + at.left + j * kPack);
        }
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
        uint32_t* to = tile + (i + e * (kThreads / kPacks)) * kPitch + j * 4;
#pragma unroll
        for (int w = 0; w < 4; ++w) to[w] = held[e].word[w];
    }
}

// The same for rows that are not aligned, an element a thread.
__device__ __forceinline__ void read_single(const U* from, Place at, uint32_t* tile) {
    constexpr int kEach = 8;
    U* elements = reinterpret_cast<U*>(tile);
    for (int unit = threadIdx.x; unit < kDown * kAcross; unit += kThreads * kEach) {
        U held[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const int64_t row = at.top + (unit + e * kThreads) / kAcross, column = at.left + unit % kAcross;
            held[e] = row < at.rows && column < at.columns ? from[row * at.columns + column] : U{};
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            elements[(unit + e * kThreads) / kAcross * kPitch * kPerWord + unit % kAcross] = held[e];
        }
    }
}

// `kPack` elements of one column of the tile, out of the words that hold that column.
__device__ __forceinline__ Quad column_of(const uint32_t (&words)[kPack], int column) {
    Quad quad;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if constexpr (kPerWord == 1) {
            quad.word[w] = words[w];
        } else {
            const uint32_t low = words[2 * w] >> (16 * column), high = words[2 * w + 1] >> (16 * column);
            quad.word[w] = (low & 0xFFFFu) | (high << 16);
        }
    }
    return quad;
}

// nvcc stores a struct word by word here, and only an intrinsic at once.
__device__ __forceinline__ void store_quad(U* to, const Quad& quad) {
#if defined(__HIP_PLATFORM_NVIDIA__)
    __stcs(reinterpret_cast<uint4*>(to), make_uint4(quad.word[0], quad.word[1], quad.word[2], quad.word[3]));
#else
    *reinterpret_cast<Quad*>(to) = quad;
#endif
}

// Columns of the tile into rows of y: a thread takes a word of `kPack` rows of the tile at a time, and threads that
// read together are spread over all banks.
__device__ __forceinline__ void write_packed(const uint32_t* tile, Place at, U* to) {
    constexpr int kSpread = 32 / kPack;
#pragma unroll
    for (int e = 0; e < kWords * kDown / kPack / kThreads; ++e) {
        const int unit = static_cast<int>(threadIdx.x) + e * kThreads;
        const int j = unit / kSpread % kWords;
        const int i = (unit % kSpread + unit / (kSpread * kWords) * kSpread) * kPack;
        uint32_t words[kPack];
#pragma unroll
        for (int k = 0; k < kPack; ++k) words[k] = tile[(i + k) * kPitch + j];
#pragma unroll
        for (int c = 0; c < kPerWord; ++c) {
            const int64_t column = at.left + j * kPerWord + c;
            if (column < at.columns && at.top + i < at.rows) {
                store_quad(to + column * at.rows + at.top + i, column_of(words, c));
            }
        }
    }
}

__device__ __forceinline__ void write_single(const uint32_t* tile, Place at, U* to) {
    const U* elements = reinterpret_cast<const U*>(tile);
#pragma unroll 8
    for (int unit = threadIdx.x; unit < kDown * kAcross; unit += kThreads) {
        const int i = unit % kDown, j = unit / kDown;
        if (at.top + i >= at.rows || at.left + j >= at.columns) continue;
        to[(at.left + j) * at.rows + at.top + i] = elements[i * kPitch * kPerWord + j];
    }
}

template <bool PackedReads, bool PackedWrites>
__global__ void __launch_bounds__(kThreads)
    tiles_kernel(const U* __restrict__ x, U* __restrict__ y, int64_t batch, int64_t rows, int64_t columns) {
    __shared__ uint32_t tile[kDown * kPitch];
    const Place at{rows, columns, static_cast<int64_t>(blockIdx.y) * kDown,
                   static_cast<int64_t>(blockIdx.x) * kAcross};
    for (int64_t b = blockIdx.z; b < batch; b += gridDim.z) {
        const U* from = x + b * rows * columns;
        U* to = y + b * rows * columns;
        if constexpr (PackedReads) {
            read_packed(from, at, tile);
        } else {
            read_single(from, at, tile);
        }
        __syncthreads();
        if constexpr (PackedWrites) {
            write_packed(tile, at, to);
        } else {
            write_single(tile, at, to);
        }
        __syncthreads();  // before the next matrix is read into the tile
    }
}

// A strip: `length` places along the long dimension, `narrow` across. On its dense side (rows of `narrow` elements in
// memory) threads walk along memory; on the other, groups of 32 walk along the long dimension.
struct Strip {
    int64_t start, longest;
    int length, narrow, pitch;
};

template <typename Move>
__device__ __forceinline__ void along_memory(Strip s, Move move) {
    const int down = kThreads / s.narrow, aside = kThreads % s.narrow;
    int l = threadIdx.x / s.narrow, n = threadIdx.x % s.narrow;
    for (int unit = threadIdx.x; unit < s.length * s.narrow; unit += kThreads) {
        move(s.start * s.narrow + unit, l * s.pitch + n);
        l += down, n += aside;
        if (n >= s.narrow) l += 1, n -= s.narrow;
    }
}

template <typename Move>
__device__ __forceinline__ void along_strip(Strip s, Move move) {
    for (int n = threadIdx.x / 32; n < s.narrow; n += kThreads / 32) {
#pragma unroll 4
        for (int l = threadIdx.x % 32; l < s.length; l += 32) move(n * s.longest + s.start + l, l * s.pitch + n);
    }
}

template <bool NarrowRows>
__global__ void __launch_bounds__(kThreads) strips_kernel(const U* __restrict__ x, U* __restrict__ y, int64_t batch,
                                                          int64_t longest, int narrow, int most) {
    __shared__ U held[kStrip];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * most;
    const int length = static_cast<int>(longest - start < most ? longest - start : most);
    const Strip strip{start, longest, length, narrow, narrow | 1};
    for (int64_t b = blockIdx.y; b < batch; b += gridDim.y) {
        const U* from = x + b * longest * narrow;
        U* to = y + b * longest * narrow;
        const auto read = [&](int64_t memory, int place) { held[place] = from[memory]; };
        const auto write = [&](int64_t memory, int place) { to[memory] = held[place]; };
        if constexpr (NarrowRows) {
            along_memory(strip, read);
        } else {
            along_strip(strip, read);
        }
        __syncthreads();
        if constexpr (NarrowRows) {
            along_strip(strip, write);
        } else {
            along_memory(strip, write);
        }
        __syncthreads();
    }
}

hipError_t launch_strips(const U* x, U* y, int64_t B, int64_t M, int64_t N, hipStream_t stream) {
    const bool narrow_rows = N <= M;
    const int64_t longest = narrow_rows ? M : N;
    const int narrow = static_cast<int>(narrow_rows ? N : M);
    const int64_t share = std::max<int64_t>(longest * B / kBlocks, kShort);
    const int most = static_cast<int>(std::min<int64_t>(share, kStrip / (narrow | 1)));
    const dim3 grid(static_cast<unsigned>((longest + most - 1) / most),
                    static_cast<unsigned>(B < kMaxDepth ? B : kMaxDepth));
    if (narrow_rows) {
        strips_kernel<true><<<grid, kThreads, 0, stream>>>(x, y, B, longest, narrow, most);
    } else {
        strips_kernel<false><<<grid, kThreads, 0, stream>>>(x, y, B, longest, narrow, most);
    }
    return hipGetLastError();
}

template <bool PackedReads, bool PackedWrites>
hipError_t launch_tiles(const U* x, U* y, int64_t B, int64_t M, int64_t N, hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>((N + kAcross - 1) / kAcross),
                    static_cast<unsigned>((M + kDown - 1) / kDown),
                    static_cast<unsigned>(B < kMaxDepth ? B : kMaxDepth));
    tiles_kernel<PackedReads, PackedWrites><<<grid, kThreads, 0, stream>>>(x, y, B, M, N);
    return hipGetLastError();
}

constexpr int kSmallTile = 16;

__global__ void __launch_bounds__(kSmallTile * kSmallTile)
    small_tiles_kernel(const U* __restrict__ x, U* __restrict__ y, int rows, int columns) {
    __shared__ U tile[kSmallTile][kSmallTile + 1];
    const int i = threadIdx.y, j = threadIdx.x;
    const int top = blockIdx.y * kSmallTile, left = blockIdx.x * kSmallTile, before = blockIdx.z * rows * columns;
    if (top + i < rows && left + j < columns) tile[i][j] = x[before + (top + i) * columns + left + j];
    __syncthreads();
    if (top + j < rows && left + i < columns) y[before + (left + i) * rows + top + j] = tile[j][i];
}

hipError_t launch_small_tiles(const U* x, U* y, int B, int M, int N, hipStream_t stream) {
    const dim3 grid((N + kSmallTile - 1) / kSmallTile, (M + kSmallTile - 1) / kSmallTile, B);
    small_tiles_kernel<<<grid, dim3(kSmallTile, kSmallTile), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}

extern "C" hipError_t transpose(const T* x, T* y, int64_t B, int64_t M, int64_t N, hipStream_t stream) {
    const U* from = reinterpret_cast<const U*>(x);
    U* to = reinterpret_cast<U*>(y);
    if (B * M * N <= kFew) {
        return launch_small_tiles(from, to, static_cast<int>(B), static_cast<int>(M), static_cast<int>(N), stream);
    }
    if (M <= kNarrow || N <= kNarrow) return launch_strips(from, to, B, M, N, stream);
    const bool reads = N % kPack == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
    const bool writes = M % kPack == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    if (reads && writes) return launch_tiles<true, true>(from, to, B, M, N, stream);
    if (reads) return launch_tiles<true, false>(from, to, B, M, N, stream);
    if (writes) return launch_tiles<false, true>(from, to, B, M, N, stream);
    return launch_tiles<false, false>(from, to, B, M, N, stream);
}
