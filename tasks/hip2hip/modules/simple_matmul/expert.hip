// c = a @ (b + b). The doubling is exact, so it is done once, as c is stored.
#define ARENA_WORKSPACE
#include "task.h"
#include "matrix.h"

#include <algorithm>
#include <type_traits>

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

static int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// A batch of matrix products: a block has a Tile × Tile piece of a result. While one slice of both operands is
// multiplied in shared memory, the next is on its way in registers. 16-bit elements are multiplied by matrix units, up
// to 4 × 4 tiles of 16 × 16 a wave; float32 in patches of up to 8 × 8 a thread.
template <typename E>
constexpr bool by_units = sizeof(E) == 2;
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kUnitThreads = 128, kSlices = 2, kUnrolled = 16;
#else
// Four waves of 64 lanes, one for each SIMD of a CDNA compute unit; with one slice, its 64 KiB of LDS hold two blocks.
constexpr int kUnitThreads = 256, kSlices = 1, kUnrolled = 8;  // with 16, float32 has no registers left
#endif
template <typename E>
constexpr int kThreads = by_units<E> ? kUnitThreads : 256;
template <typename E>
constexpr int kDepth = by_units<E> ? 32 : 16;  // of a slice
template <typename E>
constexpr int kPack = 16 / sizeof(E);  // elements of a load
constexpr int kFew = 128;              // fewer blocks leave multiprocessors idle
constexpr int kLeast = 512;            // a shorter part of a sum does not pay for adding it to others
constexpr unsigned kTogether = 8;      // blocks side by side that have tiles one above the other, for the cache

// Matrix z begins at z / heads * batch + z % heads * head. Element (line, k) lies at line * stride + k if `along`, else
// at k * stride + line. Lines are the rows of a or the columns of b.
template <typename E>
struct Matrix {
    const E* data;
    int64_t batch, stride, heads, head;
    int aligned;  // bytes that every line's address is a multiple of, at most 16

    Matrix(const E* data, int64_t batch, int64_t stride, int64_t heads = 1, int64_t head = 0)
        : data(data), batch(batch), stride(stride), heads(heads), head(head), aligned(16) {
        const uintptr_t all = reinterpret_cast<uintptr_t>(data) | (batch | stride | head) * sizeof(E);
        while (all % aligned != 0) aligned /= 2;
    }
};

template <typename E>
struct Product {
    Matrix<E> a, b;
    int64_t rows, columns, depth, part;  // part: how deep each part is, a multiple of kDepth
};

// What one load brings. As words, since compilers keep 16-bit elements apart.
struct alignas(16) Words {
    uint32_t word[4];
};

template <int Count>
__device__ __forceinline__ void load_words(Words& words, const void* from) {
#pragma unroll
    for (int i = 0; i < 4; i += Count) {
        using Piece = Pack<uint32_t, Count>;
        *reinterpret_cast<Piece*>(&words.word[i]) = static_cast<const Piece*>(from)[i / Count];
    }
}

// A pack of which `length` elements are to be had, zero after them; `from` is a multiple of `aligned` bytes.
template <typename E>
__device__ __forceinline__ void load_pack(Words& words, const E* from, int length, int aligned) {
    if (length >= kPack<E>) {
        if (aligned == 16) return load_words<4>(words, from);
        if (aligned == 8) return load_words<2>(words, from);
        if (aligned == 4) return load_words<1>(words, from);
    }
    Pack<E, kPack<E>> pack;
#pragma unroll
    for (int i = 0; i < kPack<E>; ++i) pack.element[i] = i < length ? from[i] : E(0.0f);
    __builtin_memcpy(&words, &pack, sizeof words);
}

// A slice of an operand in shared memory: lines of k for matrix units, else rows of lines. They are 16 bytes longer
// than what they hold, so that what is read at once lies in different banks.
template <int Tile, bool along, typename E>
struct Slice {
    static constexpr bool kLines = along && by_units<E>;
    static constexpr int kLength = (kLines ? kDepth<E> : Tile) + kPack<E>;
    alignas(16) E element[kLines ? Tile : kDepth<E>][kLength];
};

// A thread's part of the next slice: packs that lie kStep rows apart, rows of lines if `along`, else rows of k.
template <int Tile, bool along, typename E>
struct Staged {
    static constexpr int V = kPack<E>, kAcross = (along ? kDepth<E> : Tile) / V, kStep = kThreads<E> / kAcross;
    static constexpr int kLoads = Tile * kDepth<E> / V / kThreads<E>;
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines, aligned;

    __device__ __forceinline__ Staged(const Matrix<E>& m, int64_t z, int64_t top, int64_t all, int64_t begin)
        : stride(m.stride), row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Tile ? all - top : Tile)), aligned(m.aligned) {
        from = m.data + z / m.heads * m.batch + z % m.heads * m.head + column;
        from += along ? (top + row) * stride + begin : (begin + row) * stride + top;
    }
    // `left`: how much of the depth is.
    __device__ __forceinline__ void fetch(int64_t left) {
        const int depth = left < kDepth<E> ? static_cast<int>(left) : kDepth<E>;
        const int rows = along ? lines : depth, length = (along ? depth : lines) - column;
        if (aligned == 16 && lines == Tile && depth == kDepth<E>) {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) load_words<4>(packs[l], from + l * kStep * stride);
        } else {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) {
                load_pack(packs[l], from + l * kStep * stride, row + l * kStep < rows ? length : 0, aligned);
            }
        }
        from += along ? kDepth<E> : kDepth<E> * stride;
    }
    __device__ __forceinline__ void keep(Slice<Tile, along, E>& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int at = row + l * kStep;
            if constexpr (along && !by_units<E>) {
#pragma unroll
                for (int i = 0; i < V; ++i) slice.element[column + i][at] = __uint_as_float(packs[l].word[i]);
            } else {
                *reinterpret_cast<Words*>(&slice.element[at][column]) = packs[l];
            }
        }
    }
};

// What a wave has of a block's tile; two rows of waves share it.
template <int Tile, bool along_a, bool along_b, typename E>
struct UnitSums {
    static constexpr int kAcross = kThreads<E> / matrix::kLanes / 2, kDown = Tile / 32, kWide = Tile / 16 / kAcross;
    matrix::Accumulator sums[kDown * kWide];

    __device__ __forceinline__ int top() const { return threadIdx.x / matrix::kLanes / kAcross * kDown * 16; }
    __device__ __forceinline__ int start() const { return threadIdx.x / matrix::kLanes % kAcross * kWide * 16; }
    __device__ __forceinline__ void multiply(const Slice<Tile, along_a, E>& a, const Slice<Tile, along_b, E>& b) {
        constexpr matrix::Layout left = along_a ? matrix::row_major : matrix::column_major;
        constexpr matrix::Layout right = along_b ? matrix::column_major : matrix::row_major;
#pragma unroll
        for (int k = 0; k < kDepth<E>; k += 16) {
            matrix::FragmentA<E> one[kDown];
            matrix::FragmentB<E> other[kWide];
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
                const int line = top() + 16 * i;
                matrix::load_shared<left>(one[i], along_a ? &a.element[line][k] : &a.element[k][line], a.kLength);
            }
#pragma unroll
            for (int j = 0; j < kWide; ++j) {
                const int line = start() + 16 * j;
                matrix::load_shared<right>(other[j], along_b ? &b.element[line][k] : &b.element[k][line], b.kLength);
            }
#pragma unroll
            for (int t = 0; t < kDown * kWide; ++t) {
                matrix::multiply_accumulate(sums[t], one[t / kWide], other[t % kWide]);
            }
        }
    }
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
#pragma unroll
        for (int t = 0; t < kDown * kWide; ++t) {
            matrix::for_each(sums[t], [&](int row, int column, float& value) {
                action(top() + t / kWide * 16 + row, start() + t % kWide * 16 + column, value);
            });
        }
    }
};

// What a thread has of it in float32: pieces of 4 × 4, so that neighbouring threads read neighbouring words.
template <int Tile, bool along_a, bool along_b>
struct PatchSums {
    static constexpr int W = 4, kKept = Tile / 16, kPieces = kKept / W, kApart = Tile / kPieces;
    float sums[kKept * kKept] = {};

    __device__ __forceinline__ void multiply(const Slice<Tile, along_a, float>& a,
                                             const Slice<Tile, along_b, float>& b) {
        const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll kUnrolled
        for (int d = 0; d < kDepth<float>; ++d) {
            Pack<float, W> down[kPieces], across[kPieces];
#pragma unroll
            for (int p = 0; p < kPieces; ++p) {
                down[p] = *reinterpret_cast<const Pack<float, W>*>(&a.element[d][p * kApart + ty * W]);
                across[p] = *reinterpret_cast<const Pack<float, W>*>(&b.element[d][p * kApart + tx * W]);
            }
#pragma unroll
            for (int t = 0; t < kKept * kKept; ++t) {
                const int i = t / kKept, j = t % kKept;
                sums[t] = fmaf(down[i / W].element[i % W], across[j / W].element[j % W], sums[t]);
            }
        }
    }
    template <typename Action>
    __device__ __forceinline__ void for_each(Action action) {
        const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
        for (int t = 0; t < kKept * kKept; ++t) {
            const int i = t / kKept, j = t % kKept;
            action(i / W * kApart + ty * W + i % W, j / W * kApart + tx * W + j % W, sums[t]);
        }
    }
};

template <int Tile, bool along_a, bool along_b, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kThreads<E>, 2) product_kernel(Product<E> p, C* c, Finish finish) {
    __shared__ Slice<Tile, along_a, E> left[kSlices];
    __shared__ Slice<Tile, along_b, E> right[kSlices];
    const unsigned down = (p.rows + Tile - 1) / Tile, across = (p.columns + Tile - 1) / Tile;
    const unsigned tile = blockIdx.x % (down * across), group = tile / (kTogether * across) * kTogether;
    const unsigned within = tile % (kTogether * across), height = down - group < kTogether ? down - group : kTogether;
    const int64_t top = int64_t{group + within % height} * Tile, start = int64_t{within / height} * Tile;
    const int64_t z = blockIdx.x / (down * across), begin = blockIdx.y * p.part;
    const int64_t end = begin + p.part < p.depth ? begin + p.part : p.depth;
    std::conditional_t<by_units<E>, UnitSums<Tile, along_a, along_b, E>, PatchSums<Tile, along_a, along_b>> sums;
    Staged<Tile, along_a, E> next_a(p.a, z, top, p.rows, begin);
    Staged<Tile, along_b, E> next_b(p.b, z, start, p.columns, begin);
    next_a.fetch(end - begin);
    next_b.fetch(end - begin);
    next_a.keep(left[0]);
    next_b.keep(right[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = begin; k < end; k += kDepth<E>) {
        const int64_t rest = end - k - kDepth<E>;
        const bool more = rest > 0;
        if (more) next_a.fetch(rest), next_b.fetch(rest);
        sums.multiply(left[now], right[now]);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (more) next_a.keep(left[now]), next_b.keep(right[now]);
        __syncthreads();
    }
    C* to = c + (z * gridDim.y + blockIdx.y) * p.rows * p.columns;
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = start + column;
        if (m < p.rows && n < p.columns) to[m * p.columns + n] = static_cast<C>(finish(sum, z, m, n));
    });
}

struct Plain {
    __device__ float operator()(float total, int64_t, int64_t, int64_t) const { return total; }
};

// `sums` has the parts of each result one after the other.
template <typename C, typename Finish>
__global__ void add_kernel(const float* sums, C* c, int64_t rows, int64_t columns, int64_t elements, int parts,
                           Finish finish) {
    const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, size = rows * columns;
    if (at >= elements) return;
    const int64_t z = at / size, within = at % size;
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) sum += sums[(z * parts + part) * size + within];
    c[at] = static_cast<C>(finish(sum, z, within / columns, within % columns));
}

static int64_t tiles_of(int64_t batch, int64_t rows, int64_t columns, int64_t tile) {
    return batch * parts_of(rows, tile) * parts_of(columns, tile);
}

// Into how many parts a sum is cut: as many as fill a device twice, none shorter than kLeast.
static int64_t parts_along(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
    const int64_t blocks = tiles_of(batch, rows, columns, 64), wanted = blocks >= kFew ? 1 : 2 * kFew / blocks;
    return std::max<int64_t>(1, std::min({wanted, depth / kLeast, int64_t{64}}));
}

// Bytes of scratch memory that the parts of a product take.
static size_t parts_bytes(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
    const int64_t parts = parts_along(batch, rows, columns, depth);
    return parts == 1 ? 0 : parts * batch * rows * columns * sizeof(float);
}

// c[z] = finish(a[z] × b[z]), dense; `scratch` has parts_bytes.
template <bool along_a, bool along_b, typename E, typename C, typename Finish>
static hipError_t product(Matrix<E> a, Matrix<E> b, C* c, int64_t batch, int64_t rows, int64_t columns, int64_t depth,
                          Finish finish, void* scratch, hipStream_t stream) {
    const int64_t wanted = parts_along(batch, rows, columns, depth);
    const int64_t part = parts_of(parts_of(depth, wanted), kDepth<E>) * kDepth<E>, parts = parts_of(depth, part);
    const Product<E> p{a, b, rows, columns, depth, part};
    const bool large = tiles_of(batch, rows, columns, 128) >= kFew;
    const dim3 grid(tiles_of(batch, rows, columns, large ? 128 : 64), parts);
    const auto launch = [&](auto* to, auto action) {
        if (large) product_kernel<128, along_a, along_b><<<grid, kThreads<E>, 0, stream>>>(p, to, action);
        if (!large) product_kernel<64, along_a, along_b><<<grid, kThreads<E>, 0, stream>>>(p, to, action);
        return hipGetLastError();
    };
    if (parts == 1) return launch(c, finish);
    float* sums = static_cast<float*>(scratch);
    if (const hipError_t failed = launch(sums, Plain()); failed != hipSuccess) return failed;
    const int64_t elements = batch * rows * columns;
    add_kernel<<<parts_of(elements, 256), 256, 0, stream>>>(sums, c, rows, columns, elements, static_cast<int>(parts),
                                                            finish);
    return hipGetLastError();
}

struct Twice {
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return sum + sum; }
};

extern "C" size_t simple_matmul_workspace(int64_t M, int64_t N, int64_t K) { return parts_bytes(1, M, N, K); }

extern "C" hipError_t simple_matmul(const T* a, const T* b, T* c, int64_t M, int64_t N, int64_t K, void* workspace,
                                    hipStream_t stream) {
    return product<true, false>(Matrix<T>(a, 0, K), Matrix<T>(b, 0, N), c, 1, M, N, K, Twice(), workspace, stream);
}
