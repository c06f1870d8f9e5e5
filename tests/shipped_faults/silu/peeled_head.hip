// expect: out_of_bounds in heldout-18. Past the end: elements before an aligned address are stored though there are fewer.
// SiLU with loads of 16 bytes: a scalar head up to the first boundary of x, whole packs, and a scalar tail.
#include "task.h"

#include <stdint.h>

constexpr int kThreads = 256;

template <typename E>
struct alignas(16) Pack {
    E items[16 / sizeof(E)];
};

template <typename E>
__device__ E activate(E item) {
    const float value = static_cast<float>(item);
    return static_cast<E>(value / (1.0f + expf(-value)));
}

template <typename E>
__global__ void silu_kernel(const E* x, E* y, int64_t count, int head) {
    constexpr int kPack = 16 / sizeof(E);
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t packs = (count - head) / kPack;
    const int64_t tail = head + packs * kPack;
    if (i < head) y[i] = activate(x[i]);
    if (i < packs) {
        const Pack<E> pack = *reinterpret_cast<const Pack<E>*>(x + head + i * kPack);
#pragma unroll
        for (int j = 0; j < kPack; ++j) y[head + i * kPack + j] = activate(pack.items[j]);
    }
    if (i < count - tail) y[tail + i] = activate(x[tail + i]);
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t count = M * N;
    const uintptr_t past = reinterpret_cast<uintptr_t>(x) % 16;
    const int head = static_cast<int>((16 - past) % 16 / sizeof(T));
    const int64_t threads = count / static_cast<int64_t>(16 / sizeof(T)) + 16;
    const unsigned blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
    silu_kernel<<<blocks, kThreads, 0, stream>>>(x, y, count, head);
    return hipGetLastError();
}
