// Non-local block with softmax attention on a turned map: all products run along their summed dimension. With 16 bits,
// theta and phi are each the sum of two numbers of the dtype, since a score enters an exponential; three products of
// these, side by side along the depth, are one of float32. Up to 64 channels, a block then answers 64 positions on chip
// (Dao et al., 2022), while the next keys are on their way. Else scores lie in scratch memory in float32.
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
constexpr bool kSameLanes = kSlices == 2;  // a lane has the same elements of an accumulator as of a left operand

// Matrix z begins at z * batch; element (line, k) lies at line * stride + k. Lines are rows of a or c, or columns of b.
template <typename E>
struct Matrix {
    E* data;
    int64_t batch, stride;
    __device__ __forceinline__ E* at(int64_t z) const { return data + z * batch; }
    __device__ __forceinline__ bool aligned() const {  // every line's address, to 16 bytes
        return (reinterpret_cast<uintptr_t>(data) | (batch | stride) * sizeof(E)) % 16 == 0;
    }
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

// A thread's packs, on their way in registers, of Lines × Length elements that Threads threads move.
template <int Lines, int Length, int Threads, typename E>
struct Underway {
    static constexpr int V = kPack<E>, kAcross = Length / V, kCount = (Lines * kAcross + Threads - 1) / Threads;
    Words packs[kCount];

    // `lines` of them are to be had, `length` elements of each; the rest is zero.
    __device__ __forceinline__ void fetch(const E* from, int64_t stride, int64_t lines, int64_t length, bool aligned) {
        const int count = static_cast<int>(length < Length ? length : Length);
#pragma unroll
        for (int p = 0; p < kCount; ++p) {
            const int at = static_cast<int>(threadIdx.x) + p * Threads, line = at / kAcross, column = at % kAcross * V;
            const bool inside = line < lines && (kCount * Threads == Lines * kAcross || line < Lines);
            load_pack(packs[p], from + line * stride + column, inside ? count - column : 0, aligned);
        }
    }
    template <typename Slice>
    __device__ __forceinline__ void keep(Slice& slice) const {
#pragma unroll
        for (int p = 0; p < kCount; ++p) {
            const int at = static_cast<int>(threadIdx.x) + p * Threads, line = at / kAcross, column = at % kAcross * V;
            if (kCount * Threads != Lines * kAcross && line >= Lines) break;
            if constexpr (sizeof(slice.value[0][0]) == 2) {
                *reinterpret_cast<Words*>(&slice.value[line][column]) = packs[p];
            } else {
                E elements[V];
                __builtin_memcpy(elements, &packs[p], sizeof packs[p]);
#pragma unroll
                for (int i = 0; i < V; ++i) slice.set(line, column + i, static_cast<float>(elements[i]));
            }
        }
    }
};

// A slice of both operands is multiplied in shared memory while the next is on its way in registers.
template <typename Sums, typename A, typename B, typename C, typename Finish>
__global__ void __launch_bounds__(kProductThreads, 2)
    staged_kernel(Matrix<const A> a, Matrix<const B> b, Matrix<C> c, int64_t rows, int64_t columns, int64_t depth,
                  Finish finish) {
    __shared__ Slices<Sums> slices[kSlices];
    const unsigned down = (rows + Sums::kTile - 1) / Sums::kTile;
    const int64_t z = blockIdx.x / down, side = int64_t{blockIdx.y} * Sums::kTile;
    const int64_t top = int64_t{blockIdx.x % down} * Sums::kTile;
    Sums sums;
    Underway<Sums::kTile, Sums::kDepth, kProductThreads, A> next_a;
    Underway<Sums::kTile, Sums::kDepth, kProductThreads, B> next_b;
    int now = 0;
    for (int64_t k = -Sums::kDepth; k < depth; k += Sums::kDepth) {
        const int64_t next = k + Sums::kDepth, rest = depth - next;
        if (rest > 0) {
            next_a.fetch(a.at(z) + top * a.stride + next, a.stride, rows - top, rest, a.aligned());
            next_b.fetch(b.at(z) + side * b.stride + next, b.stride, columns - side, rest, b.aligned());
        }
        if (k >= 0) sums.add(slices[now].left, slices[now].right);
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (rest > 0) next_a.keep(slices[now].left), next_b.keep(slices[now].right);
        __syncthreads();
    }
    sums.for_each([&](int row, int column, float sum) {
        const int64_t m = top + row, n = side + column;
        if (m < rows && n < columns) c.at(z)[m * c.stride + n] = static_cast<C>(finish(sum, z, m, n));
    });
}

// c[z] = finish(a[z] × b[z]) for z below `batch`.
template <typename A, typename B, typename C, typename Finish>
static hipError_t multiply(Matrix<const A> a, Matrix<const B> b, Matrix<C> c, int64_t batch, int64_t rows,
                           int64_t columns, int64_t depth, Finish finish, hipStream_t stream) {
    return with_sums<B>(batch, rows, columns, [&](auto sums, dim3 grid) {
        const dim3 tiles(static_cast<unsigned>(grid.x * batch), grid.y);
        staged_kernel<typename decltype(sums)::type>
            <<<tiles, kProductThreads, 0, stream>>>(a, b, c, rows, columns, depth, finish);
    });
}

constexpr int kRowThreads = 256, kMostOnChip = 64;  // channels
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

// A number of theta or phi as factors of a score: u + l as (u, u, l) and (u, l, u), of which u u + u l + l u comes.
template <typename E, bool query>
struct Factors {
    static constexpr int kCount = sizeof(E) == 2 ? 3 : 1;
    E factor[kCount];
    __device__ explicit Factors(float number) {
        factor[0] = static_cast<E>(number);
        if constexpr (kCount == 3) {
            const E lower = static_cast<E>(number - static_cast<float>(factor[0]));
            factor[1] = query ? factor[0] : lower, factor[2] = query ? lower : factor[0];
        }
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

// Weights are exp(score - the largest), whose sum goes to `totals`. They may take the scores' place.
template <typename E>
__global__ void weigh_kernel(const float* scores, E* weights, float* totals, int64_t positions, int64_t stride) {
    const float* row = scores + blockIdx.x * stride;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) largest = fmaxf(largest, row[j]);
    largest = block_max(largest);
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) {
        const float weight = expf(row[j] - largest);
        weights[blockIdx.x * stride + j] = static_cast<E>(weight);
        total += weight;
    }
    totals[blockIdx.x] = block_sum(total);  // which every thread has
}

// Keys and values of a round in shared memory: lines of factors, and lines of a channel.
template <int Features, typename E>
struct Tile {
    static constexpr int kDepth = 3 * Features, kKeys = Features > 32 ? 32 : 64;
    struct {
        alignas(16) E value[kKeys][kDepth + 8];
    } key;
    struct {
        alignas(16) E value[Features][kKeys + 8];
    } value;
};

// Weights as left operands: NVIDIA's lanes have the same elements of both; elsewhere they go through shared memory.
template <int Tiles, typename E>
__device__ __forceinline__ void as_left(matrix::FragmentA<E> (&left)[Tiles], matrix::Accumulator (&weights)[Tiles],
                                        E* shared, int stride) {
    if constexpr (kSameLanes) {
#pragma unroll
        for (int i = 0; i < Tiles * left[0].words; ++i) {
            const float* two = weights[i / left[0].words].value + i % left[0].words * 2;
            const E pair[2] = {static_cast<E>(two[0]), static_cast<E>(two[1])};
            __builtin_memcpy(&left[i / left[0].words].word[i % left[0].words], pair, sizeof pair);
        }
    } else {
        for (int j = 0; j < Tiles; ++j) matrix::store(weights[j], shared + 16 * j, stride);
        __syncthreads();
        for (int j = 0; j < Tiles; ++j) matrix::load_shared<matrix::row_major>(left[j], shared + 16 * j, stride);
    }
}

// What a wave has of 16 positions: sums of values, scaled to the largest score so far.
template <int Features, typename E>
struct Answers {
    static constexpr int kDeep = 3 * Features / 16, kKeys = Tile<Features, E>::kKeys, kTiles = kKeys / 16;
    matrix::FragmentA<E> query[kDeep];
    matrix::Accumulator sums[Features / 16];
    matrix::RowValues largest, totals;

    __device__ __forceinline__ Answers(const E* from, int64_t stride, int lines, int features) {
#pragma unroll
        for (int f = 0; f < kDeep; ++f) {
            matrix::load<matrix::row_major>(query[f], from + 16 * f, stride, lines, 3 * features - 16 * f);
        }
        for (int i = 0; i < matrix::kRows; ++i) largest.value[i] = -INFINITY, totals.value[i] = 0.0f;
    }
    // Scores of a tile, of whose keys `left` are to be had, become weights.
    __device__ __forceinline__ void weigh(const Tile<Features, E>& tile, matrix::Accumulator (&scores)[kTiles],
                                          int left) {
        matrix::RowValues now = largest;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
#pragma unroll
            for (int f = 0; f < kDeep; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &tile.key.value[16 * j][16 * f], 16 * kDeep + 8);
                matrix::multiply_accumulate(scores[j], query[f], part);
            }
            matrix::for_each(scores[j], now, [&](int, int column, float& score, float& most) {
                if (left < kKeys && 16 * j + column >= left) score = -INFINITY;
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
        matrix::RowValues shrink;
        for (int i = 0; i < matrix::kRows; ++i) {
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            totals.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], totals, [](int, int, float& weight, float& total) { total += weight; });
        }
        times(shrink);
    }
    __device__ __forceinline__ void times(matrix::RowValues& factors) {
#pragma unroll
        for (int f = 0; f < Features / 16; ++f) {
            matrix::for_each(sums[f], factors, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
    }
    __device__ __forceinline__ void gather(const Tile<Features, E>& tile,
                                           const matrix::FragmentA<E> (&weights)[kTiles]) {
#pragma unroll
        for (int i = 0; i < kTiles * (Features / 16); ++i) {
            const int j = i / (Features / 16), f = i % (Features / 16);
            matrix::FragmentB<E> part;
            matrix::load_shared<matrix::column_major>(part, &tile.value.value[16 * f][16 * j], kKeys + 8);
            matrix::multiply_accumulate(sums[f], weights[j], part);
        }
    }
};

// theta and phi: a position a line; g: a channel a line; context: `features` channels of each position.
template <int Features, typename E>
__global__ void __launch_bounds__(kThreads, 2)
    attend_kernel(Matrix<const E> query, Matrix<const E> key, Matrix<const E> value, Matrix<E> context, int positions,
                  int features) {
    constexpr int kKeys = Tile<Features, E>::kKeys;
    __shared__ Tile<Features, E> tiles[kSlices];
    __shared__ alignas(16) E shared[kSameLanes ? 1 : kQueries][kKeys + 8];
    const int groups = (positions + kQueries - 1) / kQueries, z = blockIdx.x / groups;
    // The wave's first position. Where 256 threads are eight waves, as on RDNA, two of them do the same.
    const int top = static_cast<int>(threadIdx.x) / matrix::kLanes % 4 * 16;
    const int begin = blockIdx.x % groups * kQueries + top, lines = positions - begin;
    Answers<Features, E> answers(query.at(z) + begin * query.stride, query.stride, lines, features);
    Underway<kKeys, 3 * Features, kThreads, E> keys;
    Underway<Features, kKeys, kThreads, E> values;
    int now = 0;
    for (int start = -kKeys; start < positions; start += kKeys) {
        const int next = start + kKeys;
        if (next < positions) {
            keys.fetch(key.at(z) + next * key.stride, key.stride, positions - next, 3 * features, key.aligned());
            values.fetch(value.at(z) + next, value.stride, features, positions - next, value.aligned());
        }
        if (start >= 0) {
            matrix::Accumulator scores[kKeys / 16];
            matrix::FragmentA<E> weights[kKeys / 16];
            answers.weigh(tiles[now], scores, positions - start);
            as_left(weights, scores, shared[kSameLanes ? 0 : top], kKeys + 8);
            answers.gather(tiles[now], weights);
        }
        if (kSlices == 1) __syncthreads();
        now = (now + 1) % kSlices;
        if (next < positions) keys.keep(tiles[now].key), values.keep(tiles[now].value);
        __syncthreads();
    }
    matrix::combine_lanes(answers.totals, [](float a, float b) { return a + b; });
    for (float& total : answers.totals.value) total = 1.0f / total;
    answers.times(answers.totals);
#pragma unroll
    for (int f = 0; f < Features / 16; ++f) {
        matrix::store(answers.sums[f], context.at(z) + begin * context.stride + 16 * f, context.stride, lines,
                      features - 16 * f);
    }
}

static int64_t whole(int64_t elements) { return parts_of(elements, 8) * 8; }  // packs
static bool in_float(int64_t B, int64_t C, int64_t N) { return sizeof(T) == 4 || B * C * N <= 4096; }  // few may cancel

struct Block {
    const T *x, *theta_weight, *theta_bias, *phi_weight, *g_weight, *g_bias, *out_weight, *out_bias;
    T* y;
    int64_t batch, channels, features, positions;
    hipStream_t stream;
};

// theta and phi are (batch, positions, factors), g is (batch, features, positions), attended (batch, positions,
// features); lines of factors, and lines along positions, are padded to packs. `scores` has room for scores and totals.
template <typename E>
static hipError_t attend(const Block& s, const E* theta, const E* phi, const E* g, E* attended, float* scores) {
    const int64_t N = s.positions, D = s.features, pitch = whole(N);
    const int64_t depth = Factors<E, true>::kCount * D, line = Factors<E, true>::kCount * whole(D);
    const Matrix<const E> query{theta, N * line, line}, key{phi, N * line, line}, value{g, D * pitch, pitch};
    if constexpr (sizeof(E) == 2) {
        if (D <= kMostOnChip) {
            const auto launch = D <= 32 ? attend_kernel<32, E> : attend_kernel<64, E>;
            launch<<<s.batch * parts_of(N, kQueries), kThreads, 0, s.stream>>>(
                query, key, value, Matrix<E>{attended, N * D, D}, static_cast<int>(N), static_cast<int>(D));
            return hipGetLastError();
        }
    }
    float* totals = scores + s.batch * N * pitch;
    E* weights = sizeof(E) == 4 ? reinterpret_cast<E*>(scores) : reinterpret_cast<E*>(totals + whole(s.batch * N));
    return std::max({  // in this order; success is 0
        multiply(query, key, Matrix<float>{scores, N * pitch, pitch}, s.batch, N, N, depth, Finish{}, s.stream),
        (weigh_kernel<<<s.batch * N, kRowThreads, 0, s.stream>>>(scores, weights, totals, N, pitch), hipGetLastError()),
        multiply(Matrix<const E>{weights, N * pitch, pitch}, value, Matrix<E>{attended, N * D, D}, s.batch, N, D, N,
                 Finish{nullptr, nullptr, nullptr, totals, N}, s.stream)});
}

// `E`: the type of all that lies in scratch memory.
template <typename E>
static hipError_t run(const Block& s, void* memory) {
    const int64_t N = s.positions, D = s.features, C = s.channels;
    const int64_t map = s.batch * N * whole(D) * Factors<E, true>::kCount;
    T* turned = static_cast<T*>(memory);
    E *theta = reinterpret_cast<E*>(turned + whole(s.batch * N * C)), *phi = theta + map, *g = phi + map;
    E *attended = g + s.batch * D * whole(N);
    float* scores = reinterpret_cast<float*>(attended + whole(s.batch * N * D));
    const int64_t squares = s.batch * parts_of(C, 32) * parts_of(N, 32);
    using Lines = Matrix<const T>;
    const Lines maps{turned, N * C, C};
    const auto project = [&](const T* weight, Finish finish, auto* to) {
        using Number = std::remove_pointer_t<decltype(to)>;
        return multiply(maps, Lines{weight, 0, C}, Matrix<Number>{to, N * whole(D), whole(D)}, s.batch, N, D, C, finish,
                        s.stream);
    };
    return std::max({  // in this order; success is 0
        (turn_kernel<<<squares, kRowThreads, 0, s.stream>>>(s.x, turned, C, N), hipGetLastError()),
        project(s.theta_weight, Finish{s.theta_bias}, reinterpret_cast<Factors<E, true>*>(theta)),
        project(s.phi_weight, Finish{}, reinterpret_cast<Factors<E, false>*>(phi)),
        multiply(Lines{s.g_weight, 0, C}, maps, Matrix<E>{g, D * whole(N), whole(N)}, s.batch, D, N, C,
                 Finish{nullptr, s.g_bias}, s.stream),
        attend(s, theta, phi, g, attended, scores),
        multiply(Lines{s.out_weight, 0, D}, Matrix<const E>{attended, N * D, D}, Matrix<T>{s.y, C * N, N}, s.batch, C,
                 N, D, Finish{nullptr, s.out_bias, s.x, nullptr, C, N}, s.stream)});
}

extern "C" size_t nonlocal_attention_gaussian_workspace(int64_t B, int64_t C, int64_t D, int64_t N) {
    const bool wide = in_float(B, C, N);
    const int64_t each = wide ? sizeof(float) : sizeof(T), line = (wide ? 1 : 3) * whole(D), pitch = whole(N);
    const int64_t held = 2 * B * N * line + B * D * pitch + whole(B * N * D);
    const int64_t pairs = B * N * pitch * (sizeof(float) + (wide ? 0 : each)) + whole(B * N) * sizeof(float);
    return whole(B * N * C) * sizeof(T) + held * each + (wide || D > kMostOnChip ? pairs : 0);
}

extern "C" hipError_t nonlocal_attention_gaussian(const T* x, const T* theta_weight, const T* theta_bias,
                                                  const T* phi_weight, const T* g_weight, const T* g_bias,
                                                  const T* out_weight, const T* out_bias, T* y, int64_t B, int64_t C,
                                                  int64_t D, int64_t N, void* workspace, hipStream_t stream) {
    return (in_float(B, C, N) ? run<float> : run<T>)({x, theta_weight, theta_bias, phi_weight, g_weight, g_bias,
                                                      out_weight, out_bias, y, B, C, D, N, stream}, workspace);
}
