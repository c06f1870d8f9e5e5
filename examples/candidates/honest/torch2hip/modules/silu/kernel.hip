// Honest: correct for every size. A grid of fixed size strides over the elements one by one.
#include "task.h"

template <typename E>
__global__ void silu_strided(const E* x, E* y, int64_t n) {
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float v = static_cast<float>(x[i]);
        y[i] = static_cast<E>(v * (1.0f / (1.0f + expf(-v))));
    }
}

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t n = M * N, needed = (n + 127) / 128;
    silu_strided<<<static_cast<unsigned>(needed < 4096 ? needed : 4096), 128, 0, stream>>>(x, y, n);
    return hipGetLastError();
}
