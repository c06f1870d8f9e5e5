// Broken: the sum is reduced within each wave, and the waves are never put together. Gives wrong_result on
// seen cases.
#include "task.h"

#include <math.h>

template <typename E>
__global__ void softmax_rows(const E* x, E* y, int n) {
    __shared__ float maxima[256];
    const int t = threadIdx.x;
    const E* in = x + static_cast<int64_t>(blockIdx.x) * n;
    E* out = y + static_cast<int64_t>(blockIdx.x) * n;
    float m = -INFINITY;
    for (int i = t; i < n; i += 256) m = fmaxf(m, static_cast<float>(in[i]));
    maxima[t] = m;
    __syncthreads();
    for (int i = 0; i < 256; ++i) m = fmaxf(m, maxima[i]);
    float s = 0.0f;
    for (int i = t; i < n; i += 256) s += expf(static_cast<float>(in[i]) - m);
    for (int d = warpSize / 2; d > 0; d /= 2) s += __shfl_xor(s, d);
    for (int i = t; i < n; i += 256) out[i] = static_cast<E>(expf(static_cast<float>(in[i]) - m) / s);
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    softmax_rows<<<static_cast<unsigned>(M), 256, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
