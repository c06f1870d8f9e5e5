// Scaled inner product. For up to four positions of the image, memory decides: a thread has a pack of sound positions
// and reads it once for all of those. For more, a first launch scales the image, and each sample is then a product.
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

// A batch of matrix products: a block has a Tile × Wide piece of a result. While one slice of both operands is
// multiplied in shared memory, the next is on its way in registers; on NVIDIA, the next three of 16-bit elements are on
// their way past them. 16-bit elements are multiplied by matrix units, up to 4 × 4 tiles of 16 × 16 a wave; float32 in
// patches of up to 8 × 8 a thread.
template <typename E>
constexpr bool by_units = sizeof(E) == 2;
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kCopied = 3, kUnrolled = 16;
// 16 bytes to shared memory: `bytes` of `from`, then zeros.
__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
// Ends the copies of a slice and waits for those begun kCopied - 1 slices before.
__device__ __forceinline__ void await_copies() {
    asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;" ::"n"(kCopied - 1) : "memory");
}
#else
// With one slice, 64 KiB of LDS hold two blocks; unrolled 16 times, float32 has no registers left.
constexpr int kCopied = 0, kUnrolled = 8;
__device__ inline void copy_async(void*, const void*, int) {}
__device__ inline void await_copies() {}
#endif
template <typename E>
constexpr bool copies = kCopied > 0 && by_units<E>;  // to shared memory past the registers
template <typename E>
constexpr int kSlices = copies<E> ? kCopied + 1 : kCopied > 0 ? 2 : 1;  // in shared memory
template <typename E>
constexpr int kDepth = by_units<E> ? 32 : 16;  // of a slice
constexpr int kThreads = 256;
constexpr int kFew = 128;          // fewer blocks leave multiprocessors idle
constexpr int kLeast = 512;        // a shorter part of a sum does not pay for adding it to others
constexpr unsigned kTogether = 8;  // blocks side by side that have tiles one above the other, for the cache

// Matrix z begins at z * batch. Element (line, k) lies at line * stride + k if `along`, else at k * stride + line.
// Lines are the rows of a or the columns of b.
template <typename E>
struct Matrix {
    const E* data;
    int64_t batch, stride;
    int aligned;  // bytes that every line's address is a multiple of, at most 16

    Matrix(const E* data, int64_t batch, int64_t stride) : data(data), batch(batch), stride(stride), aligned(16) {
        const uintptr_t all = reinterpret_cast<uintptr_t>(data) | (batch | stride) * sizeof(E);
        while (all % aligned != 0) aligned /= 2;
    }
};

template <typename E>
struct Product {
    Matrix<E> a, b;
    int64_t rows, columns, depth, part;  // part: how deep each part is, a multiple of kDepth
};

// A slice of an operand in shared memory: lines of k for matrix units, else rows of lines. They are 16 bytes longer
// than what they hold, so that what is read at once lies in different banks.
template <int Tile, bool along, typename E>
struct Slice {
    static constexpr bool kLines = along && by_units<E>;
    static constexpr int kLength = (kLines ? kDepth<E> : Tile) + 16 / sizeof(E);
    alignas(16) E element[kLines ? Tile : kDepth<E>][kLength];

    __device__ const E* at(int line, int k) const { return &element[along ? line : k][along ? k : line]; }
};

// A thread's part of the next slice: packs that lie kStep rows apart, rows of lines if `along`, else rows of k.
template <int Tile, bool along, typename E>
struct Staged {
    static constexpr int V = 16 / sizeof(E), kAcross = (along ? kDepth<E> : Tile) / V, kStep = kThreads / kAcross;
    static constexpr int kLoads = Tile * kDepth<E> / V / kThreads;
    using Words = Pack<uint32_t, 4>;  // a pack as words, since compilers keep 16-bit elements apart
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines, aligned;

    __device__ __forceinline__ Staged(const Matrix<E>& m, int64_t z, int64_t top, int64_t all, int64_t begin)
        : stride(m.stride), row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Tile ? all - top : Tile)), aligned(m.aligned) {
        from = m.data + z * m.batch + column + (along ? (top + row) * stride + begin : (begin + row) * stride + top);
    }
    // A pack of which `length` elements are to be had, zero after them.
    __device__ __forceinline__ void load(Words& words, const E* at, int length) const {
        Pack<E, V> pack;
        if (length >= V && aligned >= 4) {
#pragma unroll
            for (int i = 0; i < 4; ++i) words.element[i] = reinterpret_cast<const uint32_t*>(at)[i];
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) pack.element[i] = i < length ? at[i] : E(0.0f);
            __builtin_memcpy(&words, &pack, sizeof words);
        }
    }
    // `left`: how much of the depth is. Zeros come after it, even where no slice is left: its fragments are loaded.
    __device__ __forceinline__ void fetch(Slice<Tile, along, E>& slice, int left) {
        const int depth = min(left, kDepth<E>), rows = (along ? lines : depth) - row;
        const int length = (along ? depth : lines) - column;
        const auto at = [&](int l) { return from + l * kStep * stride; };
        const auto there = [&](int l, int all) { return l * kStep < rows ? all : 0; };
        if (copies<E> && aligned == 16) {
            E* const to = &slice.element[row][column];
            const int bytes = max(0, min(length, V)) * int{sizeof(E)};
#pragma unroll
            for (int l = 0; l < kLoads; ++l) copy_async(to + l * kStep * slice.kLength, at(l), there(l, bytes));
        } else if (aligned == 16 && lines == Tile && depth == kDepth<E>) {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) packs[l] = *reinterpret_cast<const Words*>(at(l));
        } else {
#pragma unroll
            for (int l = 0; l < kLoads; ++l) load(packs[l], at(l), there(l, length));
            if (copies<E>) keep(slice);
        }
        from += along ? kDepth<E> : kDepth<E> * stride;
    }
    __device__ __forceinline__ void keep(Slice<Tile, along, E>& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int at = row + l * kStep;
            if constexpr (along && !by_units<E>) {
#pragma unroll
                for (int i = 0; i < V; ++i) slice.element[column + i][at] = __uint_as_float(packs[l].element[i]);
            } else {
                *reinterpret_cast<Words*>(&slice.element[at][column]) = packs[l];
            }
        }
    }
};

// What a wave has of a block's tile; two rows of waves share it. The two steps of a slice have their own fragments, so
// that those of one are loaded while those of the other are multiplied.
template <int Tile, int Wide, bool along_a, bool along_b, typename E>
struct UnitSums {
    static constexpr int kAcross = kThreads / matrix::kLanes / 2, kDown = Tile / 32, kWide = Wide / 16 / kAcross;
    matrix::Accumulator sums[kDown * kWide];
    matrix::FragmentA<E> one[2][kDown];
    matrix::FragmentB<E> other[2][kWide];

    __device__ __forceinline__ int top() const { return threadIdx.x / matrix::kLanes / kAcross * kDown * 16; }
    __device__ __forceinline__ int start() const { return threadIdx.x / matrix::kLanes % kAcross * kWide * 16; }
    __device__ __forceinline__ void load(const Slice<Tile, along_a, E>& a, const Slice<Wide, along_b, E>& b, int s) {
        constexpr matrix::Layout left = along_a ? matrix::row_major : matrix::column_major;
        constexpr matrix::Layout right = along_b ? matrix::column_major : matrix::row_major;
        const int k = 16 * s;
#pragma unroll
        for (int i = 0; i < kDown; ++i) matrix::load_shared<left>(one[s][i], a.at(top() + 16 * i, k), a.kLength);
#pragma unroll
        for (int j = 0; j < kWide; ++j) matrix::load_shared<right>(other[s][j], b.at(start() + 16 * j, k), b.kLength);
    }
    __device__ __forceinline__ void add(int s) {
#pragma unroll
        for (int t = 0; t < kDown * kWide; ++t) {
            matrix::multiply_accumulate(sums[t], one[s][t / kWide], other[s][t % kWide]);
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

template <int Tile, int Wide, bool along_a, bool along_b, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kThreads, copies<E> && Tile > 64 ? 1 : 2)
    product_kernel(Product<E> p, C* c, Finish finish) {
    constexpr int kAhead = copies<E> ? kCopied : 1;  // slices on their way
    extern __shared__ Pack<uint32_t, 4> memory[];
    auto* const left = reinterpret_cast<Slice<Tile, along_a, E>*>(memory);
    auto* const right = reinterpret_cast<Slice<Wide, along_b, E>*>(left + kSlices<E>);
    const unsigned down = (p.rows + Tile - 1) / Tile, across = (p.columns + Wide - 1) / Wide;
    const unsigned tile = blockIdx.x % (down * across), group = tile / (kTogether * across) * kTogether;
    const unsigned within = tile % (kTogether * across), height = down - group < kTogether ? down - group : kTogether;
    const int top = (group + within % height) * Tile, start = within / height * Wide;
    const int64_t z = blockIdx.x / (down * across), begin = blockIdx.y * p.part;
    int rest = static_cast<int>(min(p.part, p.depth - begin));
    std::conditional_t<by_units<E>, UnitSums<Tile, Wide, along_a, along_b, E>, PatchSums<Tile, along_a, along_b>> sums;
    Staged<Tile, along_a, E> next_a(p.a, z, top, p.rows, begin);
    Staged<Wide, along_b, E> next_b(p.b, z, start, p.columns, begin);
    const auto fetch = [&](int s) { next_a.fetch(left[s], rest), next_b.fetch(right[s], rest), rest -= kDepth<E>; };
    const auto keep = [&](int s) { copies<E> ? await_copies() : (next_a.keep(left[s]), next_b.keep(right[s])); };
    for (int s = 0; s < kAhead; ++s) fetch(s), keep(s);
    __syncthreads();
    if constexpr (by_units<E>) sums.load(left[0], right[0], 0);
    for (int now = 0; rest > -kAhead * kDepth<E>;) {
        const int next = (now + kAhead) % kSlices<E>;
        fetch(next);
        if constexpr (by_units<E>) sums.load(left[now], right[now], 1), sums.add(0);
        if constexpr (!by_units<E>) sums.multiply(left[now], right[now]);
        if (kSlices<E> == 1) __syncthreads();
        keep(next);
        __syncthreads();
        now = (now + 1) % kSlices<E>;
        if constexpr (by_units<E>) sums.load(left[now], right[now], 0), sums.add(1);
    }
    C* to = c + (z * gridDim.y + blockIdx.y) * p.rows * p.columns;
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = start + column;
        if (m < p.rows && n < p.columns) to[m * p.columns + n] = static_cast<C>(finish(sum, z, m, n));
    });
}

struct Times {
    float factor = 1.0f;
    __device__ float operator()(float sum, int64_t, int64_t, int64_t) const { return factor * sum; }
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

// Into how many parts a sum is cut: as many as fill a device twice, none shorter than kLeast.
static int64_t parts_along(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
    const int64_t blocks = batch * parts_of(rows, 64) * parts_of(columns, 64);
    const int64_t wanted = blocks >= kFew ? 1 : 2 * kFew / blocks;
    return std::max<int64_t>(1, std::min({wanted, depth / kLeast, int64_t{64}}));
}

// Bytes of scratch memory that the parts of a product take.
static size_t parts_bytes(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
    const int64_t parts = parts_along(batch, rows, columns, depth);
    return parts == 1 ? 0 : parts * batch * rows * columns * sizeof(float);
}

// Larger tiles need fewer loads for as many products; where there are few, smaller ones keep more of a device busy.
template <int Tile, int Wide, bool along_a, bool along_b, typename E, typename C, typename Finish>
static hipError_t launch(const Product<E>& p, C* c, int64_t batch, Finish finish, hipStream_t stream) {
    const int64_t tiles = batch * parts_of(p.rows, Tile) * parts_of(p.columns, Wide);
    if constexpr (Wide > 64) {
        const bool idle = tiles < (Wide > Tile ? kFew * 4 / 5 : kFew);
        if (idle) return launch<Wide / 2, Wide / 2, along_a, along_b>(p, c, batch, finish, stream);
    }
    const auto kernel = product_kernel<Tile, Wide, along_a, along_b, E, C, Finish>;
    const int bytes = kSlices<E> * (sizeof(Slice<Tile, along_a, E>) + sizeof(Slice<Wide, along_b, E>));
    const hipError_t failed = hipFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                  hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (failed != hipSuccess) return failed;
    const dim3 grid(tiles, parts_of(p.depth, p.part));
    kernel<<<grid, kThreads, bytes, stream>>>(p, c, finish);
    return hipGetLastError();
}

// c[z] = finish(a[z] × b[z]), dense; `scratch` has parts_bytes.
template <bool along_a, bool along_b, typename E, typename C, typename Finish>
static hipError_t product(Matrix<E> a, Matrix<E> b, C* c, int64_t batch, int64_t rows, int64_t columns, int64_t depth,
                          Finish finish, void* scratch, hipStream_t stream) {
    const int64_t wanted = parts_along(batch, rows, columns, depth);
    const int64_t part = parts_of(parts_of(depth, wanted), kDepth<E>) * kDepth<E>, parts = parts_of(depth, part);
    const Product<E> p{a, b, rows, columns, depth, part};
    // Storing takes most of the time of short sums. Of small tiles, three blocks at once hide each other's.
    const bool small = rows <= 64 || (by_units<E> && depth <= 256);
    const auto run = [&](auto* to, auto action) {
        if (small) return launch<64, 64, along_a, along_b>(p, to, batch, action, stream);
        return launch<128, copies<E> ? 256 : 128, along_a, along_b>(p, to, batch, action, stream);
    };
    if (parts == 1) return run(c, finish);
    float* sums = static_cast<float*>(scratch);
    if (const hipError_t failed = run(sums, Times()); failed != hipSuccess) return failed;
    const int64_t elements = batch * rows * columns;
    add_kernel<<<parts_of(elements, 256), 256, 0, stream>>>(sums, c, rows, columns, elements, parts, finish);
    return hipGetLastError();
}

constexpr int kPack = 16 / sizeof(T);
struct Features {
    const T *image, *scale, *sound, *bias;
    T* y;
    int64_t batch, channels, positions, sounds;  // positions of the image, of the sound
};

// V sound positions for each thread, `packs` threads a sample. The sound of eight channels is loaded at once.
template <int Rows, int V>
__global__ void __launch_bounds__(kThreads) few_kernel(Features f, unsigned packs) {
    const unsigned index = blockIdx.x * kThreads + threadIdx.x;
    const int64_t sample = index / packs, first = int64_t{index % packs} * V;
    if (sample >= f.batch) return;
    const T *image = f.image + sample * f.channels * Rows, *sound = f.sound + sample * f.channels * f.sounds + first;
    float sums[Rows][V] = {};
    const auto add = [&](auto count, int64_t c) {
        Pack<T, V> lines[count];
#pragma unroll
        for (int i = 0; i < count; ++i) lines[i] = *reinterpret_cast<const Pack<T, V>*>(sound + (c + i) * f.sounds);
#pragma unroll
        for (int t = 0; t < count * Rows * V; ++t) {
            const int at = t / V, i = at / Rows, r = at % Rows, v = t % V;
            const float factor = static_cast<float>(image[c * Rows + at]) * static_cast<float>(f.scale[c + i]);
            sums[r][v] = fmaf(factor, static_cast<float>(lines[i].element[v]), sums[r][v]);
        }
    };
    int64_t c = 0;
    for (; c + 8 <= f.channels; c += 8) add(std::integral_constant<int, 8>(), c);
    for (; c < f.channels; ++c) add(std::integral_constant<int, 1>(), c);
    const float bias = static_cast<float>(*f.bias);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        Pack<T, V> line;
#pragma unroll
        for (int v = 0; v < V; ++v) line.element[v] = static_cast<T>(sums[r][v] + bias);
        *reinterpret_cast<Pack<T, V>*>(f.y + (sample * Rows + r) * f.sounds + first) = line;
    }
}

// Packs of 16 bytes where all are aligned and enough to fill a device.
template <int Rows>
static hipError_t few(const Features& f, hipStream_t stream) {
    const int aligned = std::min(Matrix<T>(f.sound, 0, f.sounds).aligned, Matrix<T>(f.y, 0, f.sounds).aligned);
    const bool whole = aligned == 16 && f.batch * f.sounds >= 65536 * kPack;
    const auto kernel = whole ? few_kernel<Rows, kPack> : few_kernel<Rows, 1>;
    const int64_t packs = f.sounds / (whole ? kPack : 1);
    kernel<<<parts_of(f.batch * packs, kThreads), kThreads, 0, stream>>>(f, static_cast<unsigned>(packs));
    return hipGetLastError();
}

__global__ void scale_kernel(Features f, T* scaled, int64_t stride) {
    const unsigned index = blockIdx.x * kThreads + threadIdx.x, positions = f.positions, line = index / positions;
    if (line >= f.batch * f.channels) return;
    const float factor = static_cast<float>(f.scale[line % f.channels]);
    scaled[line * stride + index % positions] = static_cast<T>(static_cast<float>(f.image[index]) * factor);
}

// Few long sums would leave a device idle as packs; a product cuts them into parts.
static bool by_packs(int64_t B, int64_t C, int64_t P, int64_t S) { return P <= 4 && (C < 512 || B * S >= 65536); }

extern "C" size_t inner_product_workspace(int64_t B, int64_t C, int64_t P, int64_t S) {
    return by_packs(B, C, P, S) ? 0 : B * C * parts_of(P, kPack) * 16 + parts_bytes(B, P, S, C);
}

extern "C" hipError_t inner_product(const T* image, const T* scale, const T* sound, const T* bias, T* y, int64_t B,
                                    int64_t C, int64_t P, int64_t S, void* workspace, hipStream_t stream) {
    const Features f{image, scale, sound, bias, y, B, C, P, S};
    constexpr hipError_t (*few_rows[])(const Features&, hipStream_t) = {few<1>, few<2>, few<3>, few<4>};
    if (by_packs(B, C, P, S)) return few_rows[P - 1](f, stream);
    const int64_t stride = parts_of(P, kPack) * kPack;  // which aligns the lines of the scaled image
    T* const scaled = static_cast<T*>(workspace);
    scale_kernel<<<parts_of(B * C * P, kThreads), kThreads, 0, stream>>>(f, scaled, stride);
    const auto plus_bias = [=] __device__(float sum, int64_t, int64_t, int64_t) { return sum + float(*bias); };
    return product<false, false>(Matrix<T>(scaled, C * stride, stride), Matrix<T>(sound, C * S, S), y, B, P, S, C,
                                 plus_bias, scaled + B * C * stride, stream);
}
