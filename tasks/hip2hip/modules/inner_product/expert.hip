// Scaled inner product in one launch. For up to four positions of the image, memory decides: a thread keeps 16 bytes'
// worth of sound positions of all of them and reads the sound once. For more: a tile of y a block, a patch of it in the
// registers of each thread, the image scaled on its way into shared memory, the next slices under way meanwhile.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kSide = 16;   // patches along each side of a tile
constexpr int kDepth = 16;  // channels of a step
constexpr int kFew = 4;     // positions of the image that one thread takes
constexpr int kTogether = 8;  // channels that it loads at once
constexpr int64_t kMostBlocks = 65535, kManyPacks = 65536, kLong = 512;

template <typename E, int V>
struct alignas(V * sizeof(E)) Pack {
    E element[V];
};

template <typename E>
struct Features {
    const E *image, *scale, *sound, *bias;
    E* y;
    int64_t batch, channels, of_image, of_sound;
    bool whole_image, whole_sound;  // whether packs that start at multiples of 8 positions are aligned
};

// Elements first … first + V - 1 of a line of `length`, zero past its end.
template <int V, typename E>
__device__ __forceinline__ Pack<E, V> load(const E* line, int64_t first, int64_t length, bool whole) {
    if (whole && first + V <= length) return *reinterpret_cast<const Pack<E, V>*>(line + first);
    Pack<E, V> pack;
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = first + i < length ? line[first + i] : static_cast<E>(0.0f);
    return pack;
}

template <int V, typename E>
__device__ __forceinline__ void store(E* line, int64_t first, int64_t length, bool whole, const float* sums,
                                      float bias) {
    Pack<E, V> pack;
#pragma unroll
    for (int i = 0; i < V; ++i) pack.element[i] = static_cast<E>(sums[i] + bias);
    if (whole && first + V <= length) {
        *reinterpret_cast<Pack<E, V>*>(line + first) = pack;
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        if (first + i < length) line[first + i] = pack.element[i];
    }
}

// Adds `Count` channels from `c` on. All loads come before the first product, so that they are under way together.
template <int Count, int Rows, int V, bool Whole, typename E>
__device__ __forceinline__ void add_channels(float (&sums)[Rows][V], const Features<E>& f, const E* image,
                                             const E* sound, int64_t first, int64_t c) {
    Pack<E, V> lines[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        const E* line = sound + (c + i) * f.of_sound;
        lines[i] = Whole ? *reinterpret_cast<const Pack<E, V>*>(line + first) : load<V>(line, first, f.of_sound, false);
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        const float scale = static_cast<float>(f.scale[c + i]);
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
            const float factor = static_cast<float>(image[(c + i) * Rows + r]) * scale;
#pragma unroll
            for (int v = 0; v < V; ++v) sums[r][v] = fmaf(factor, static_cast<float>(lines[i].element[v]), sums[r][v]);
        }
    }
}

// One pack of sound positions for each thread; threads count packs of all samples together. Whole: each is aligned.
template <int Rows, int V, bool Whole, typename E>
__global__ void __launch_bounds__(kThreads) few_kernel(Features<E> f, unsigned packs) {
    const unsigned index = blockIdx.x * kThreads + threadIdx.x;
    const int64_t sample = index / packs, first = int64_t{index % packs} * V;
    if (sample >= f.batch) return;
    const E* image = f.image + sample * f.channels * Rows;
    const E* sound = f.sound + sample * f.channels * f.of_sound;
    float sums[Rows][V] = {};
    int64_t c = 0;
    for (; c + kTogether <= f.channels; c += kTogether) {
        add_channels<kTogether, Rows, V, Whole>(sums, f, image, sound, first, c);
    }
    for (; c < f.channels; ++c) add_channels<1, Rows, V, Whole>(sums, f, image, sound, first, c);
    const float bias = static_cast<float>(*f.bias);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        store<V>(f.y + (sample * Rows + r) * f.of_sound, first, f.of_sound, Whole, sums[r], bias);
    }
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
    alignas(32) float image[kDepth][Tile];
    alignas(32) float sound[kDepth][Tile];
};

// A thread's part of the next slices, on its way from memory.
template <typename E, int Tile>
struct Staged {
    static constexpr int V = Layout<Tile>::V, kPacks = Tile / V;
    Pack<E, V> image, sound;
    float scale;

    __device__ __forceinline__ void fetch(const Features<E>& f, int64_t sample, int64_t start) {
        const int64_t channel = start + threadIdx.x / kPacks, at = sample * f.channels + channel;
        const bool inside = channel < f.channels;
        const int offset = threadIdx.x % kPacks * V;
        const int64_t top = int64_t{blockIdx.y} * Tile + offset, side = int64_t{blockIdx.x} * Tile + offset;
        image = load<V>(f.image + at * f.of_image, top, inside ? f.of_image : 0, f.whole_image);
        sound = load<V>(f.sound + at * f.of_sound, side, inside ? f.of_sound : 0, f.whole_sound);
        scale = inside ? static_cast<float>(f.scale[channel]) : 0.0f;
    }
    __device__ __forceinline__ void keep(Slices<Tile>& slices) const {
        const int channel = threadIdx.x / kPacks, offset = threadIdx.x % kPacks * V;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            slices.image[channel][offset + i] = static_cast<float>(image.element[i]) * scale;
            slices.sound[channel][offset + i] = static_cast<float>(sound.element[i]);
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
            down[p] = *reinterpret_cast<const Pack<float, W>*>(&slices.image[d][p * L::kApart + ty * W]);
            across[p] = *reinterpret_cast<const Pack<float, W>*>(&slices.sound[d][p * L::kApart + tx * W]);
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
__device__ __forceinline__ void write(const Features<E>& f, int64_t sample, const float (&sums)[Kept][Kept], int tx,
                                      int ty) {
    using L = Layout<Tile>;
    const float bias = static_cast<float>(*f.bias);
#pragma unroll
    for (int i = 0; i < Kept; ++i) {
        const int64_t row = int64_t{blockIdx.y} * Tile + i / L::W * L::kApart + ty * L::W + i % L::W;
        if (row >= f.of_image) continue;
        E* line = f.y + (sample * f.of_image + row) * f.of_sound;
#pragma unroll
        for (int p = 0; p < L::kPieces; ++p) {
            const int64_t first = int64_t{blockIdx.x} * Tile + p * L::kApart + tx * L::W;
            store<L::W>(line, first, f.of_sound, f.whole_sound, &sums[i][p * L::W], bias);
        }
    }
}

template <int Tile, typename E>
__global__ void __launch_bounds__(kThreads, 2) tile_kernel(Features<E> f) {
    __shared__ Slices<Tile> slices;
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
    for (int64_t sample = blockIdx.z; sample < f.batch; sample += gridDim.z) {
        float sums[Layout<Tile>::Kept][Layout<Tile>::Kept] = {};
        Staged<E, Tile> next;
        next.fetch(f, sample, 0);
        for (int64_t start = 0; start < f.channels; start += kDepth) {
            next.keep(slices);
            __syncthreads();
            if (start + kDepth < f.channels) next.fetch(f, sample, start + kDepth);
            multiply<Tile>(slices, sums, tx, ty);
            __syncthreads();
        }
        write<Tile>(f, sample, sums, tx, ty);
    }
}

static unsigned parts(int64_t size, int64_t part) { return static_cast<unsigned>((size + part - 1) / part); }

template <int Rows, int V>
static hipError_t few_packs(const Features<T>& f, hipStream_t stream) {
    const int64_t packs = (f.of_sound + V - 1) / V;
    const auto launch = f.whole_sound ? few_kernel<Rows, V, true, T> : few_kernel<Rows, V, false, T>;
    launch<<<parts(f.batch * packs, kThreads), kThreads, 0, stream>>>(f, static_cast<unsigned>(packs));
    return hipGetLastError();
}

template <int Tile>
static hipError_t tiles(const Features<T>& f, hipStream_t stream) {
    const int64_t samples = f.batch < kMostBlocks ? f.batch : kMostBlocks;
    const dim3 grid(parts(f.of_sound, Tile), parts(f.of_image, Tile), static_cast<unsigned>(samples));
    tile_kernel<Tile><<<grid, kThreads, 0, stream>>>(f);
    return hipGetLastError();
}

// Packs where there are enough of them to fill a device. Where there are not, a long sum is better shared by a tile.
template <int Rows>
static hipError_t few(const Features<T>& f, hipStream_t stream) {
    constexpr int V = 16 / sizeof(T);
    if (f.batch * f.of_sound >= kManyPacks * V) return few_packs<Rows, V>(f, stream);
    return f.channels < kLong ? few_packs<Rows, 1>(f, stream) : tiles<64>(f, stream);
}

static bool whole(const T* tensor, int64_t line) {
    return line % 8 == 0 && reinterpret_cast<uintptr_t>(tensor) % sizeof(Pack<T, 8>) == 0;
}

extern "C" hipError_t inner_product(const T* image, const T* scale, const T* sound, const T* bias, T* y, int64_t B,
                                    int64_t C, int64_t P, int64_t S, hipStream_t stream) {
    const Features<T> f{image, scale, sound, bias, y, B, C, P, S, whole(image, P), whole(sound, S) && whole(y, S)};
    if (P == 1) return few<1>(f, stream);
    if (P == 2) return few<2>(f, stream);
    if (P == 3) return few<3>(f, stream);
    if (P == kFew) return few<kFew>(f, stream);
    const int64_t tile = 128, blocks = ((P + tile - 1) / tile) * ((S + tile - 1) / tile) * B;
    if (P > 64 && blocks >= 256) return tiles<128>(f, stream);
    return tiles<64>(f, stream);
}
