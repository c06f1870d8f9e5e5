// Non-local block with softmax attention on a turned map: all products run along their summed dimension. With 16 bits
// and up to 256 channels, a block answers 64 positions on chip (Dao et al., 2022). theta and phi are each the sum of
// two numbers of the dtype, since a score enters an exponential; three products of these are one of float32. Else
// scores lie in scratch memory in float32, their exponentials in their place.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>
#include <algorithm>

static int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

template <typename E>
constexpr int kPack = 16 / sizeof(E);  // elements of a load
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kSlices = 2;
#else
constexpr int kSlices = 1;  // so that the 64 KiB of a CDNA compute unit's LDS hold two blocks
#endif

// Matrix z begins at z * batch; element (line, k) lies at line * stride + k. Lines are rows of a or c, or columns of b.
template <typename E>
struct Matrix {
    E* data;
    int64_t batch, stride;

    __device__ __forceinline__ E* at(int64_t z) const { return data + z * batch; }
    // Whether every line's address is a multiple of 16 bytes.
    bool aligned() const { return (reinterpret_cast<uintptr_t>(data) | (batch | stride) * sizeof(E)) % 16 == 0; }
};

template <typename E>
struct Product {
    Matrix<const E> a, b;
    int64_t rows, columns, depth;
    bool aligned_a, aligned_b;
};

using Words = matrix::Pack<4>;  // what one load brings; compilers keep 16-bit elements apart

// A pack of which `length` elements are to be had, zero after them; at once if addresses are multiples of 16 bytes.
template <typename E>
__device__ __forceinline__ void load_pack(Words& words, const E* from, int length, bool aligned) {
    if (length >= kPack<E> && aligned) {
        words = *reinterpret_cast<const Words*>(from);
        return;
    }
    E elements[kPack<E>];
#pragma unroll
    for (int i = 0; i < kPack<E>; ++i) elements[i] = i < length ? from[i] : E(0.0f);
    __builtin_memcpy(&words, elements, sizeof words);
}

// A thread's part of the next slice: packs of lines that lie kStep apart.
template <typename Sums, typename E>
struct Staged {
    static constexpr int V = kPack<E>, kAcross = Sums::kDepth / V, kStep = kProductThreads / kAcross;
    static constexpr int kLoads = (Sums::kTile + kStep - 1) / kStep;
    Words packs[kLoads];
    const E* from;
    int64_t stride;
    int row, column, lines;
    bool aligned;

    __device__ __forceinline__ Staged(const Matrix<const E>& m, bool aligned, int64_t z, int64_t top, int64_t all)
        : stride(m.stride), row(threadIdx.x / kAcross), column(threadIdx.x % kAcross * V),
          lines(static_cast<int>(all - top < Sums::kTile ? all - top : Sums::kTile)), aligned(aligned) {
        from = m.at(z) + column + (top + row) * stride;
    }
    // `left`: how much of the depth is.
    __device__ __forceinline__ void fetch(int64_t left) {
        const int depth = left < Sums::kDepth ? static_cast<int>(left) : Sums::kDepth;
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            load_pack(packs[l], from + l * kStep * stride, row + l * kStep < lines ? depth - column : 0, aligned);
        }
        from += Sums::kDepth;
    }
    __device__ __forceinline__ void keep(typename Sums::Slice& slice) const {
#pragma unroll
        for (int l = 0; l < kLoads; ++l) {
            const int line = row + l * kStep;
            if (kLoads * kStep > Sums::kTile && line >= Sums::kTile) break;
            if constexpr (std::is_same_v<std::decay_t<decltype(slice.value[0][0])>, E> && sizeof(E) == 2) {
                *reinterpret_cast<Words*>(&slice.value[line][column]) = packs[l];
            } else {
                E elements[V];
                __builtin_memcpy(elements, &packs[l], sizeof packs[l]);
#pragma unroll
                for (int i = 0; i < V; ++i) slice.set(line, column + i, static_cast<float>(elements[i]));
            }
        }
    }
};

// A slice of both operands is multiplied in shared memory while the next is on its way in registers.
template <typename Sums, typename E, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2) staged_kernel(Product<E> p, Matrix<C> c, Finish finish) {
    __shared__ Slices<Sums> slices[kSlices];
    const unsigned down = (p.rows + Sums::kTile - 1) / Sums::kTile;
    const int64_t z = blockIdx.x / down, side = int64_t{blockIdx.y} * Sums::kTile;
    const int64_t top = int64_t{blockIdx.x % down} * Sums::kTile;
    Sums sums;
    Staged<Sums, E> next_a(p.a, p.aligned_a, z, top, p.rows), next_b(p.b, p.aligned_b, z, side, p.columns);
    int now = 0;
    for (int64_t k = -Sums::kDepth; k < p.depth; k += Sums::kDepth) {
        const int64_t rest = p.depth - k - Sums::kDepth;
        if (rest > 0) next_a.fetch(rest), next_b.fetch(rest);
        if (k >= 0) sums.add(slices[now].left, slices[now].right);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (rest > 0) next_a.keep(slices[now].left), next_b.keep(slices[now].right);
        __syncthreads();
    }
    C* to = c.at(z);
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < p.rows && n < p.columns) to[m * c.stride + n] = static_cast<C>(finish(sum, z, m, n));
    });
}

// c[z] = finish(a[z] × b[z]) for z below `batch`.
template <typename E, typename C, typename Finish>
static hipError_t multiply(Matrix<const E> a, Matrix<const E> b, Matrix<C> c, int64_t batch, int64_t rows,
                           int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    const Product<E> p{a, b, rows, columns, depth, a.aligned(), b.aligned()};
    return with_sums<E>(batch, rows, columns, [&](auto sums, dim3 grid) {
        const dim3 tiles(static_cast<unsigned>(grid.x * batch), grid.y);
        staged_kernel<typename decltype(sums)::type><<<tiles, kProductThreads, 0, stream>>>(p, c, finish);
    });
}

constexpr int kRowThreads = 256;
constexpr int kQueries = 64;  // positions of a block: 16 of each wave
constexpr int kThreads = kSlices == 2 ? 128 : 256;  // four waves

// A bias by column or by row, the map that the block was given, division by the sum of a row's weights; where given.
struct Finish {
    const T *of_column = nullptr, *of_row = nullptr, *x = nullptr;
    const float* totals = nullptr;
    int64_t rows = 0, columns = 0;
    __device__ float operator()(float sum, int64_t z, int64_t m, int64_t n) const {
        if (of_column != nullptr) sum += static_cast<float>(of_column[n]);
        if (of_row != nullptr) sum += static_cast<float>(of_row[m]);
        if (totals != nullptr) sum /= totals[z * rows + m];
        return x == nullptr ? sum : sum + static_cast<float>(x[(z * rows + m) * columns + n]);
    }
};

// A number of float32 as the sum of two of 16 bits.
template <typename E>
struct alignas(4) Split {
    E upper, lower;

    __device__ explicit Split(float sum) : upper(static_cast<E>(sum)) {
        lower = static_cast<E>(sum - static_cast<float>(upper));
    }
};

// (batch, rows, columns) to (batch, columns, rows).
__global__ void turn_kernel(const T* from, T* to, int64_t rows, int64_t columns) {
    __shared__ T tile[32][33];
    const int64_t across = (columns + 31) / 32, down = (rows + 31) / 32, z = blockIdx.x / (across * down);
    const int64_t top = blockIdx.x / across % down * 32, side = blockIdx.x % across * 32;
    const int line = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = line; i < 32; i += kRowThreads / 32) {
        if (top + i < rows && side + lane < columns) tile[i][lane] = from[(z * rows + top + i) * columns + side + lane];
    }
    __syncthreads();
    for (int i = line; i < 32; i += kRowThreads / 32) {
        if (side + i < columns && top + lane < rows) to[(z * columns + side + i) * rows + top + lane] = tile[lane][i];
    }
}

template <typename E>
__global__ void widen_kernel(const T* from, E* to, int64_t elements) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
    if (at < elements) to[at] = static_cast<E>(static_cast<float>(from[at]));
}

// Scores become weights, exp(score - the largest), whose sum goes to `totals`.
__global__ void weigh_kernel(float* scores, float* totals, int64_t positions) {
    float* row = scores + blockIdx.x * positions;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) largest = fmaxf(largest, row[j]);
    largest = block_max(largest);
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) {
        row[j] = expf(row[j] - largest);
        total += row[j];
    }
    totals[blockIdx.x] = block_sum(total);  // which every thread has
}

// Operands of attention on chip. Lines of `value` are channels, of the others positions.
template <typename E>
struct Attention {
    Matrix<const Split<E>> query, key;
    Matrix<const E> value;
    Matrix<E> context;
    int64_t positions, features;
};

// A tile of phi or of g to shared memory, zeros past its ends.
template <int Keys, int Features, typename E>
__device__ __forceinline__ void stage(E (&upper)[Keys][Features + 8], E (&lower)[Keys][Features + 8],
                                      const Split<E>* from, int64_t stride, int64_t lines, int64_t length) {
    for (int i = threadIdx.x; i < Keys * Features; i += kThreads) {
        const int line = i / Features, column = i % Features;
        const Split<E> element = line < lines && column < length ? from[line * stride + column] : Split<E>(0.0f);
        upper[line][column] = element.upper, lower[line][column] = element.lower;
    }
}
template <int Features, int Keys, typename E>
__device__ __forceinline__ void stage(E (&to)[Features][Keys + 8], const E* from, int64_t stride, int64_t lines,
                                      int64_t length, bool aligned) {
    for (int i = threadIdx.x; i < Features * Keys / 8; i += kThreads) {
        const int line = i / (Keys / 8), column = i % (Keys / 8) * 8;
        const int64_t left = line < lines ? length - column : 0;
        Words words;
        load_pack(words, from + line * stride + column, static_cast<int>(left < 8 ? left : 8), aligned);
        *reinterpret_cast<Words*>(&to[line][column]) = words;
    }
}

template <int Features, typename E>
__global__ void __launch_bounds__(kThreads) attend_kernel(Attention<E> all, bool aligned) {
    constexpr int kKeys = Features > 128 ? 16 : Features > 64 ? 32 : 64, kDeep = Features / 16, kTiles = kKeys / 16;
    __shared__ alignas(16) E upper[kKeys][Features + 8], lower[kKeys][Features + 8];
    __shared__ alignas(16) E values[Features][kKeys + 8], weights[kQueries][kKeys + 8];
    const int64_t groups = (all.positions + kQueries - 1) / kQueries, z = blockIdx.x / groups;
    const int64_t begin = blockIdx.x % groups * kQueries;
    // The wave's first position. Where 256 threads are eight waves, as on RDNA, two of them do the same.
    const int top = static_cast<int>(threadIdx.x) / matrix::kLanes % 4 * 16;
    matrix::FragmentA<E> query[2][kDeep];  // upper and lower parts
    const Split<E>* asked = all.query.at(z) + (begin + top) * all.query.stride;
#pragma unroll
    for (int f = 0; f < kDeep; ++f) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            matrix::fill(query[part][f], [&](int line, int k) {
                if (begin + top + line >= all.positions || 16 * f + k >= all.features) return E(0.0f);
                const Split<E> element = asked[line * all.query.stride + 16 * f + k];
                return part == 0 ? element.upper : element.lower;
            });
        }
    }
    matrix::Accumulator sums[kDeep];
    matrix::RowValues largest, totals;
#pragma unroll
    for (int i = 0; i < matrix::kRows; ++i) largest.value[i] = -INFINITY, totals.value[i] = 0.0f;
    for (int64_t start = 0; start < all.positions; start += kKeys) {
        __syncthreads();
        const int64_t left = all.positions - start;
        const Split<E>* key = all.key.at(z) + start * all.key.stride;
        stage<kKeys, Features>(upper, lower, key, all.key.stride, left, all.features);
        stage<Features, kKeys>(values, all.value.at(z) + start, all.value.stride, all.features, left, aligned);
        __syncthreads();
        matrix::Accumulator scores[kTiles];
        matrix::RowValues now = largest, shrink;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> over, under;
                matrix::load_shared<matrix::column_major>(over, &upper[16 * j][16 * f], Features + 8);
                matrix::load_shared<matrix::column_major>(under, &lower[16 * j][16 * f], Features + 8);
                matrix::multiply_accumulate(scores[j], query[0][f], under);
                matrix::multiply_accumulate(scores[j], query[1][f], over);
                matrix::multiply_accumulate(scores[j], query[0][f], over);
            }
            matrix::for_each(scores[j], now, [&](int, int column, float& score, float& most) {
                if (16 * j + column >= left) score = -INFINITY;
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
        for (int i = 0; i < matrix::kRows; ++i) {
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            totals.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], totals, [](int, int, float& weight, float& total) { total += weight; });
            matrix::store(scores[j], &weights[top][16 * j], kKeys + 8);
        }
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::for_each(sums[f], shrink, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::FragmentA<E> weight;
            matrix::load_shared<matrix::row_major>(weight, &weights[top][16 * j], kKeys + 8);
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &values[16 * f][16 * j], kKeys + 8);
                matrix::multiply_accumulate(sums[f], weight, part);
            }
        }
    }
    matrix::combine_lanes(totals, [](float a, float b) { return a + b; });
    E* context = all.context.at(z) + (begin + top) * all.context.stride;
#pragma unroll
    for (int f = 0; f < kDeep; ++f) {
        matrix::for_each(sums[f], totals, [&](int row, int column, float& sum, float& total) {
            if (begin + top + row < all.positions && 16 * f + column < all.features) {
                context[row * all.context.stride + 16 * f + column] = static_cast<E>(sum / total);
            }
        });
    }
}

static int64_t whole(int64_t elements) { return parts_of(elements, 8) * 8; }  // packs
// Few outputs may cancel, and are computed in float32 throughout.
static bool on_chip(int64_t B, int64_t C, int64_t D, int64_t N) {
    return sizeof(T) == 2 && B * C * N > 4096 && D <= 256;
}

struct Block {
    const T *x, *theta_weight, *theta_bias, *phi_weight, *g_weight, *g_bias, *out_weight, *out_bias;
    T* y;
    int64_t batch, channels, features, positions;
    hipStream_t stream;
};

// theta, phi and attended are (batch, positions, features), g is (batch, features, positions).
static hipError_t attend(const Block& s, const float* theta, const float* phi, const float* g, float* attended,
                         float* scores) {
    const int64_t N = s.positions, D = s.features;
    float* totals = scores + s.batch * N * N;
    using Lines = Matrix<const float>;
    Finish divide{};
    divide.totals = totals, divide.rows = N;
    return std::max({  // in this order; success is 0
        multiply(Lines{theta, N * D, D}, Lines{phi, N * D, D}, Matrix<float>{scores, N * N, N}, s.batch, N, N, D,
                 Finish{}, s.stream),
        (weigh_kernel<<<s.batch * N, kRowThreads, 0, s.stream>>>(scores, totals, N), hipGetLastError()),
        multiply(Lines{scores, N * N, N}, Lines{g, D * N, N}, Matrix<float>{attended, N * D, D}, s.batch, N, D, N,
                 divide, s.stream)});
}
template <typename E>
static hipError_t attend(const Block& s, const Split<E>* theta, const Split<E>* phi, const E* g, E* attended, float*) {
    const int64_t N = s.positions, D = s.features;
    const Attention<E> all{{theta, N * D, D}, {phi, N * D, D}, {g, D * N, N}, {attended, N * D, D}, N, D};
    const auto small = D <= 32 ? attend_kernel<32, E> : attend_kernel<64, E>;
    const auto launch = D <= 64 ? small : D <= 128 ? attend_kernel<128, E> : attend_kernel<256, E>;
    launch<<<s.batch * parts_of(N, kQueries), kThreads, 0, s.stream>>>(all, all.value.aligned());
    return hipGetLastError();
}

// `Score`: of theta and phi; `E`: of g and what is gathered of it.
template <typename Score, typename E>
static hipError_t run(const Block& s, void* memory) {
    const int64_t N = s.positions, D = s.features, C = s.channels, map = whole(s.batch * N * D);
    T* turned = static_cast<T*>(memory);
    Score *theta = reinterpret_cast<Score*>(turned + whole(s.batch * N * C)), *phi = theta + map;
    E *g = reinterpret_cast<E*>(phi + map), *attended = g + map, *out = attended + map;
    const int64_t tiles = s.batch * parts_of(C, 32) * parts_of(N, 32);
    using Lines = Matrix<const T>;
    const Lines maps{turned, N * C, C};
    const Finish residual{nullptr, s.out_bias, s.x, nullptr, C, N};
    const unsigned blocks = static_cast<unsigned>(parts_of(C * D, kRowThreads));
    widen_kernel<<<blocks, kRowThreads, 0, s.stream>>>(s.out_weight, out, C * D);  // or copies
    return std::max({  // in this order; success is 0
        (turn_kernel<<<tiles, kRowThreads, 0, s.stream>>>(s.x, turned, C, N), hipGetLastError()),
        multiply(maps, Lines{s.theta_weight, 0, C}, Matrix<Score>{theta, N * D, D}, s.batch, N, D, C,
                 Finish{s.theta_bias}, s.stream),
        multiply(maps, Lines{s.phi_weight, 0, C}, Matrix<Score>{phi, N * D, D}, s.batch, N, D, C, Finish{}, s.stream),
        multiply(Lines{s.g_weight, 0, C}, maps, Matrix<E>{g, D * N, N}, s.batch, D, N, C, Finish{nullptr, s.g_bias},
                 s.stream),
        attend(s, theta, phi, g, attended, reinterpret_cast<float*>(out) + whole(C * D)),
        multiply(Matrix<const E>{out, 0, D}, Matrix<const E>{attended, N * D, D}, Matrix<T>{s.y, C * N, N},
                 s.batch, C, N, D, residual, s.stream)});
}

extern "C" size_t nonlocal_attention_gaussian_workspace(int64_t B, int64_t C, int64_t D, int64_t N) {
    const int64_t map = whole(B * N * D) * sizeof(float);
    const int64_t pairs = on_chip(B, C, D, N) ? 0 : whole(B * N * (N + 1)) * sizeof(float);
    return whole(B * N * C) * sizeof(T) + 4 * map + pairs + whole(C * D) * sizeof(float);
}

extern "C" hipError_t nonlocal_attention_gaussian(const T* x, const T* theta_weight, const T* theta_bias,
                                                  const T* phi_weight, const T* g_weight, const T* g_bias,
                                                  const T* out_weight, const T* out_bias, T* y, int64_t B, int64_t C,
                                                  int64_t D, int64_t N, void* workspace, hipStream_t stream) {
    const Block s{x, theta_weight, theta_bias, phi_weight, g_weight, g_bias, out_weight, out_bias,
                  y, B, C, D, N, stream};
    if constexpr (sizeof(T) == 2) {
        if (on_chip(B, C, D, N)) return run<Split<T>, T>(s, workspace);
    }
    return run<float, float>(s, workspace);
}
