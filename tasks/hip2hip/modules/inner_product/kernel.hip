// Scaled inner product over channels in one launch: a block has a strip of the sound's positions and a few positions of
// the image, whose scaled features lie in shared memory. A thread's sums stay in registers over all channels.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kAcross = 4;  // positions of the sound of a thread, kThreads apart
constexpr int kStrip = kThreads * kAcross;
constexpr int kChannels = 64;  // of which features are in shared memory at a time

struct Sizes {
    int64_t channels, positions, sounds;  // of the image, of the sound
};

__device__ inline int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

// kDown positions of the image; blocks count (batch, strips, positions / kDown). Past the last position the last is read
// again, whose results are not stored.
template <int kDown, typename E>
__global__ void strip_kernel(const E* image, const E* scale, const E* sound, const E* bias, E* y, Sizes sizes) {
    __shared__ float scaled[kChannels][kDown];
    const int64_t groups = (sizes.positions + kDown - 1) / kDown, strips = (sizes.sounds + kStrip - 1) / kStrip;
    const int64_t sample = blockIdx.x / groups / strips, first = blockIdx.x % groups * kDown;
    const int64_t start = blockIdx.x / groups % strips * kStrip + threadIdx.x;
    float sums[kDown][kAcross] = {};
    for (int64_t begin = 0; begin < sizes.channels; begin += kChannels) {
        const int64_t channels = lesser(sizes.channels - begin, kChannels);
        for (int i = threadIdx.x; i < channels * kDown; i += kThreads) {
            const int64_t channel = begin + i / kDown, position = lesser(first + i % kDown, sizes.positions - 1);
            const int64_t at = (sample * sizes.channels + channel) * sizes.positions + position;
            scaled[i / kDown][i % kDown] = static_cast<float>(image[at]) * static_cast<float>(scale[channel]);
        }
        __syncthreads();
        const E* of_channel = sound + (sample * sizes.channels + begin) * sizes.sounds;
        for (int64_t c = 0; c < channels; ++c, of_channel += sizes.sounds) {
            float value[kAcross];
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                value[j] = static_cast<float>(of_channel[lesser(start + j * kThreads, sizes.sounds - 1)]);
            }
#pragma unroll
            for (int i = 0; i < kDown * kAcross; ++i) {
                sums[i / kAcross][i % kAcross] += scaled[c][i / kAcross] * value[i % kAcross];
            }
        }
        __syncthreads();  // before the next features are written there
    }
    const float offset = static_cast<float>(*bias);
#pragma unroll
    for (int i = 0; i < kDown * kAcross; ++i) {
        const int64_t p = first + i / kAcross, s = start + i % kAcross * kThreads;
        if (p < sizes.positions && s < sizes.sounds) {
            const int64_t at = (sample * sizes.positions + p) * sizes.sounds + s;
            y[at] = static_cast<E>(sums[i / kAcross][i % kAcross] + offset);
        }
    }
}

extern "C" hipError_t inner_product(const T* image, const T* scale, const T* sound, const T* bias, T* y, int64_t B,
                                    int64_t C, int64_t P, int64_t S, hipStream_t stream) {
    const Sizes sizes{C, P, S};
    const int64_t strips = B * ((S + kStrip - 1) / kStrip);
    if (P == 1) {
        const unsigned blocks = static_cast<unsigned>(strips);
        strip_kernel<1><<<blocks, kThreads, 0, stream>>>(image, scale, sound, bias, y, sizes);
    } else {
        const unsigned blocks = static_cast<unsigned>(strips * ((P + 15) / 16));
        strip_kernel<16><<<blocks, kThreads, 0, stream>>>(image, scale, sound, bias, y, sizes);
    }
    return hipGetLastError();
}
