// Fast: 16 bytes an access where the pointers allow it, and an exponential without its slow range check.
#include "task.h"

struct alignas(16) Chunk {
    static constexpr int kCount = 16 / sizeof(T);
    T item[kCount];
};

__device__ __forceinline__ T apply(T item) {
    const float v = static_cast<float>(item);
    return static_cast<T>(v / (1.0f + __expf(-v)));
}

__global__ void silu_chunks(const Chunk* x, Chunk* y, int64_t chunks) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= chunks) return;
    Chunk chunk = x[i];
#pragma unroll
    for (T& item : chunk.item) item = apply(item);
    y[i] = chunk;
}

__global__ void silu_items(const T* x, T* y, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) y[i] = apply(x[i]);
}

static unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + 255) / 256); }

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t count = M * N;
    const bool aligned = ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) & 15) == 0;
    const int64_t chunks = aligned ? count / Chunk::kCount : 0;
    const int64_t done = chunks * Chunk::kCount;
    if (chunks > 0) {
        const Chunk* from = reinterpret_cast<const Chunk*>(x);
        silu_chunks<<<blocks_for(chunks), 256, 0, stream>>>(from, reinterpret_cast<Chunk*>(y), chunks);
    }
    const int64_t left = count - done;
    if (left > 0) silu_items<<<blocks_for(left), 256, 0, stream>>>(x + done, y + done, left);
    return hipGetLastError();
}
