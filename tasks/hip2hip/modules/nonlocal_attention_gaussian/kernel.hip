// Non-local block with softmax attention. The 1×1 convolutions are matrix products into scratch memory. With 16 bits,
// theta and phi are each kept as a sum of two numbers of the dtype, since a score enters an exponential, and three
// products of these, side by side, make a score. Up to 64 channels, a block then answers 64 positions with an online
// softmax over tiles of keys; else scores lie in scratch memory, and a block a position turns them into weights.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"
#include "product.h"

#include <math.h>

constexpr int kRowThreads = 128;
constexpr int kThreads = 256, kPositions = 64;  // of a block that attends: 16 of each of four waves; others only load
constexpr int kMostOnChip = 64;                 // channels

// A number of theta or phi as factors of a score: u + l as (u, u, l) and (u, l, u), of which u u + u l + l u comes.
template <typename E, bool query>
struct Factors {
    static constexpr int kCount = sizeof(E) == 2 ? 3 : 1;
    E factor[kCount];

    __device__ explicit Factors(float number) {
        factor[0] = static_cast<E>(number);
        if constexpr (kCount == 3) {
            const E lower = static_cast<E>(number - static_cast<float>(factor[0]));
            factor[1] = query ? factor[0] : lower;
            factor[2] = query ? lower : factor[0];
        }
    }
};

// A 1×1 convolution's bias, by row or, of a turned result, by column.
template <typename E>
struct Bias {
    const E* bias;
    bool turned;
    __device__ float operator()(float sum, int64_t, int64_t m, int64_t n) const {
        return sum + static_cast<float>(bias[turned ? n : m]);
    }
};

// A 1×1 convolution's bias, then the map that the block was given.
template <typename E>
struct BiasResidual {
    const E *bias, *x;
    int64_t channels, positions;
    __device__ float operator()(float sum, int64_t z, int64_t m, int64_t n) const {
        return sum + static_cast<float>(bias[m]) + static_cast<float>(x[(z * channels + m) * positions + n]);
    }
};

// Scores become weights of one position; they may lie in the same place.
template <typename E>
__global__ void softmax_kernel(const float* scores, E* weights, int64_t positions) {
    const float* row = scores + static_cast<int64_t>(blockIdx.x) * positions;
    E* to = weights + static_cast<int64_t>(blockIdx.x) * positions;
    float largest = -INFINITY;
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) largest = fmaxf(largest, row[j]);
    largest = block_max(largest);
    float total = 0.0f;
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) total += expf(row[j] - largest);
    total = block_sum(total);
    for (int64_t j = threadIdx.x; j < positions; j += kRowThreads) {
        to[j] = static_cast<E>(expf(row[j] - largest) / total);
    }
}

// Tiles of keys and values, and the weights of the block's positions for these keys.
template <int Features, typename E>
struct Round {
    static constexpr int kKeys = Features > 32 ? 32 : 64, kDepth = 3 * Features;
    alignas(16) E keys[kKeys][kDepth + 8];      // by key
    alignas(16) E values[Features][kKeys + 8];  // by channel
    alignas(16) E weights[kPositions][kKeys + 8];
};

// `Lines` lines of up to `Length` elements to shared memory; zeros where there are fewer.
template <int Lines, int Length, typename E>
__device__ void stage(E (&to)[Lines][Length + 8], const E* from, int64_t stride, int64_t lines, int64_t length) {
    for (int i = threadIdx.x; i < Lines * Length; i += kThreads) {
        const int line = i / Length, column = i % Length;
        to[line][column] = line < lines && column < length ? from[line * stride + column] : static_cast<E>(0.0f);
    }
}

// What a wave has of 16 positions, scaled to the largest score so far.
template <int Features, typename E>
struct Attended {
    static constexpr int kDeep = 3 * Features / 16, kKeys = Round<Features, E>::kKeys, kTiles = kKeys / 16;
    matrix::FragmentA<E> query[kDeep];
    matrix::Accumulator sums[Features / 16];
    matrix::RowValues largest, totals;

    // The weights of a tile of keys, of which `left` are to be had, to the wave's rows of shared memory.
    __device__ void weigh(Round<Features, E>& round, int top, int64_t left) {
        matrix::Accumulator scores[kTiles];
        matrix::RowValues now = largest, shrink;
#pragma unroll
        for (int i = 0; i < kTiles * kDeep; ++i) {
            const int j = i / kDeep, f = i % kDeep;
            matrix::FragmentB<E> part;
            matrix::load_shared<matrix::column_major>(part, &round.keys[16 * j][16 * f], round.kDepth + 8);
            matrix::multiply_accumulate(scores[j], query[f], part);
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [&](int, int column, float& score, float& most) {
                if (16 * j + column >= left) score = -INFINITY;
                most = fmaxf(most, score);
            });
        }
        matrix::combine_lanes(now, [](float a, float b) { return fmaxf(a, b); });
        for (int i = 0; i < matrix::kRows; ++i) {
            shrink.value[i] = __expf(largest.value[i] - now.value[i]);
            totals.value[i] *= shrink.value[i];
        }
        largest = now;
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::for_each(scores[j], now, [](int, int, float& score, float& most) { score = __expf(score - most); });
            matrix::for_each(scores[j], totals, [](int, int, float& weight, float& total) { total += weight; });
            matrix::store(scores[j], &round.weights[top][16 * j], kKeys + 8);
        }
#pragma unroll
        for (int f = 0; f < Features / 16; ++f) {
            matrix::for_each(sums[f], shrink, [](int, int, float& sum, float& factor) { sum *= factor; });
        }
    }
    __device__ void gather(const Round<Features, E>& round, int top) {
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            matrix::FragmentA<E> weight;
            matrix::load_shared<matrix::row_major>(weight, &round.weights[top][16 * j], kKeys + 8);
#pragma unroll
            for (int f = 0; f < Features / 16; ++f) {
                matrix::FragmentB<E> part;
                matrix::load_shared<matrix::column_major>(part, &round.values[16 * f][16 * j], kKeys + 8);
                matrix::multiply_accumulate(sums[f], weight, part);
            }
        }
    }
};

// theta and phi: (batch, positions, 3 × features); g: (batch, features, positions); attended: (batch, positions,
// features).
template <int Features, typename E>
__global__ void __launch_bounds__(kThreads, 2)
    attend_kernel(const E* theta, const E* phi, const E* g, E* attended, int64_t positions, int64_t features) {
    using Of = Round<Features, E>;
    __shared__ Of round;
    const int64_t groups = (positions + kPositions - 1) / kPositions, z = blockIdx.x / groups, depth = 3 * features;
    const int wave = static_cast<int>(threadIdx.x) / matrix::kLanes, top = wave % 4 * 16;
    const int64_t begin = blockIdx.x % groups * kPositions + top, lines = positions - begin;
    phi += z * positions * depth;
    g += z * features * positions;
    Attended<Features, E> mine;
    const E* asked = theta + (z * positions + begin) * depth;
#pragma unroll
    for (int f = 0; f < Attended<Features, E>::kDeep; ++f) {
        matrix::load<matrix::row_major>(mine.query[f], asked + 16 * f, depth, lines, depth - 16 * f);
    }
    for (int i = 0; i < matrix::kRows; ++i) {
        mine.largest.value[i] = -INFINITY;
        mine.totals.value[i] = 0.0f;
    }
    for (int64_t start = 0; start < positions; start += Of::kKeys) {
        const int64_t left = positions - start;
        stage<Of::kKeys, 3 * Features>(round.keys, phi + start * depth, depth, left, depth);
        stage<Features, Of::kKeys>(round.values, g + start, positions, features, left);
        __syncthreads();
        if (wave < 4) mine.weigh(round, top, left);
        __syncthreads();
        if (wave < 4) mine.gather(round, top);
        __syncthreads();
    }
    if (wave >= 4) return;
    matrix::combine_lanes(mine.totals, [](float a, float b) { return a + b; });
    E* to = attended + (z * positions + begin) * features;
#pragma unroll
    for (int f = 0; f < Features / 16; ++f) {
        matrix::for_each(mine.sums[f], mine.totals, [](int, int, float& sum, float& total) { sum /= total; });
        matrix::store(mine.sums[f], to + 16 * f, features, lines, features - 16 * f);
    }
}

struct Block {
    const T *x, *theta_weight, *theta_bias, *phi_weight, *g_weight, *g_bias, *out_weight, *out_bias;
    T* y;
    int64_t batch, channels, features, positions;
    hipStream_t stream;
};

// Few outputs may cancel, and are computed in float32 throughout.
static bool in_float(int64_t B, int64_t C, int64_t N) { return sizeof(T) == 4 || B * C * N <= 4096; }

// Scores and weights in scratch memory. theta and phi: (batch, positions, factors); g: (batch, features, positions);
// attended: (batch, positions, features).
template <typename E>
static hipError_t attend_in_memory(const Block& s, const E* theta, const E* phi, const E* g, E* attended,
                                   float* scores) {
    const int64_t B = s.batch, N = s.positions, D = s.features, depth = Factors<E, true>::kCount * D;
    E* weights = sizeof(E) == 4 ? reinterpret_cast<E*>(scores) : reinterpret_cast<E*>(scores + B * N * N);
    const Matrices<const E> queries{theta, N * depth, depth, 1}, keys{phi, N * depth, 1, depth};
    const Matrices<const E> pairs{weights, N * N, N, 1}, values{g, D * N, 1, N};
    hipError_t failed = product(queries, keys, Matrices<float>{scores, N * N, N, 1}, B, N, N, depth, Plain(), s.stream);
    if (failed != hipSuccess) return failed;
    softmax_kernel<<<static_cast<unsigned>(B * N), kRowThreads, 0, s.stream>>>(scores, weights, N);
    failed = hipGetLastError();
    if (failed != hipSuccess) return failed;
    return product(pairs, values, Matrices<E>{attended, N * D, D, 1}, B, N, D, N, Plain(), s.stream);
}

template <typename E>
static hipError_t attend(const Block& s, const E* theta, const E* phi, const E* g, E* attended, float* scores) {
    if constexpr (sizeof(E) == 2) {
        const int64_t groups = (s.positions + kPositions - 1) / kPositions;
        const unsigned blocks = static_cast<unsigned>(s.batch * groups);
        if (s.features <= kMostOnChip) {
            const auto launch = s.features <= 32 ? attend_kernel<32, E> : attend_kernel<64, E>;
            launch<<<blocks, kThreads, 0, s.stream>>>(theta, phi, g, attended, s.positions, s.features);
            return hipGetLastError();
        }
    }
    return attend_in_memory(s, theta, phi, g, attended, scores);
}

// `E`: the type of what lies in scratch memory, but of scores, which are float32.
template <typename E>
static hipError_t run(const Block& s, void* workspace) {
    using Theta = Factors<E, true>;
    using Phi = Factors<E, false>;
    const int64_t B = s.batch, C = s.channels, D = s.features, N = s.positions;
    Theta* theta = static_cast<Theta*>(workspace);
    Phi* phi = reinterpret_cast<Phi*>(theta + B * N * D);
    E *g = reinterpret_cast<E*>(phi + B * N * D), *attended = g + B * N * D;
    float* scores = reinterpret_cast<float*>(attended + B * N * D);
    const Matrices<const T> maps{s.x, C * N, N, 1}, turned{s.x, C * N, 1, N};
    const Matrices<const E> gathered{attended, N * D, 1, D};
    const hipError_t outcomes[] = {
        product(turned, Matrices<const T>{s.theta_weight, 0, 1, C}, Matrices<Theta>{theta, N * D, D, 1}, B, N, D, C,
                Bias<T>{s.theta_bias, true}, s.stream),
        product(turned, Matrices<const T>{s.phi_weight, 0, 1, C}, Matrices<Phi>{phi, N * D, D, 1}, B, N, D, C, Plain(),
                s.stream),
        product(Matrices<const T>{s.g_weight, 0, C, 1}, maps, Matrices<E>{g, D * N, N, 1}, B, D, N, C,
                Bias<T>{s.g_bias, false}, s.stream),
        attend(s, theta->factor, phi->factor, g, attended, scores),
        product(Matrices<const T>{s.out_weight, 0, D, 1}, gathered, Matrices<T>{s.y, C * N, N, 1}, B, C, N, D,
                BiasResidual<T>{s.out_bias, s.x, C, N}, s.stream),
    };
    for (const hipError_t outcome : outcomes) {
        if (outcome != hipSuccess) return outcome;
    }
    return hipSuccess;
}

extern "C" size_t nonlocal_attention_gaussian_workspace(int64_t B, int64_t C, int64_t D, int64_t N) {
    if (in_float(B, C, N)) return B * N * (4 * D + N) * sizeof(float);
    const int64_t pairs = D <= kMostOnChip ? 0 : B * N * N * (sizeof(float) + sizeof(T));
    return 8 * B * N * D * sizeof(T) + pairs;
}

extern "C" hipError_t nonlocal_attention_gaussian(const T* x, const T* theta_weight, const T* theta_bias,
                                                  const T* phi_weight, const T* g_weight, const T* g_bias,
                                                  const T* out_weight, const T* out_bias, T* y, int64_t B, int64_t C,
                                                  int64_t D, int64_t N, void* workspace, hipStream_t stream) {
    const Block s{x, theta_weight, theta_bias, phi_weight, g_weight, g_bias, out_weight, out_bias,
                  y, B, C, D, N, stream};
    return in_float(B, C, N) ? run<float>(s, workspace) : run<T>(s, workspace);
}
