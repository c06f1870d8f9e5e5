// expect: crash in heldout-08. Misaligned vectors: four numbers are loaded at once wherever x begins.
#include "task.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
struct alignas(4 * sizeof(E)) Four {
    E of[4];
};

template <typename E>
__global__ void scaled_sigmoid_kernel(const E* x, float slope, float maximum, E* y, int64_t count) {
    const int64_t i = 4 * (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x);
    if (i + 4 <= count) {
        const Four<E> four = *reinterpret_cast<const Four<E>*>(x + i);
        for (int j = 0; j < 4; ++j) y[i + j] = static_cast<E>(maximum / (1.0f + expf(-slope * static_cast<float>(four.of[j]))));
    } else {
        for (int64_t j = i; j < count; ++j) y[j] = static_cast<E>(maximum / (1.0f + expf(-slope * static_cast<float>(x[j]))));
    }
}

extern "C" hipError_t scaled_sigmoid(const T* x, float slope, float maximum, T* y, int64_t M, int64_t N,
                                     hipStream_t stream) {
    const int64_t count = M * N;
    const unsigned blocks = static_cast<unsigned>((count + 4 * kThreads - 1) / (4 * kThreads));
    scaled_sigmoid_kernel<<<blocks, kThreads, 0, stream>>>(x, slope, maximum, y, count);
    return hipGetLastError();
}
