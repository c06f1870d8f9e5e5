// expect: crash in heldout-09. Misaligned vectors: rows of even length are copied in pairs, though their stride may be odd.
#include "task.h"

constexpr int kThreads = 256;

template <typename E>
struct alignas(2 * sizeof(E)) Two {
    E of[2];
};

template <typename E>
__global__ void gather_rows_kernel(const E* table, const int64_t* index, E* y, int64_t width, int64_t pitch) {
    const E* from = table + index[blockIdx.x] * pitch;
    E* to = y + blockIdx.x * width;
    if (width % 2 == 0) {
        for (int64_t i = threadIdx.x; i < width / 2; i += kThreads) {
            reinterpret_cast<Two<E>*>(to)[i] = reinterpret_cast<const Two<E>*>(from)[i];
        }
    } else {
        for (int64_t i = threadIdx.x; i < width; i += kThreads) to[i] = from[i];
    }
}

extern "C" hipError_t gather_rows(const T* table, const int64_t* index, T* y, int64_t, int64_t D, int64_t K,
                                  int64_t row_gap, hipStream_t stream) {
    gather_rows_kernel<<<static_cast<unsigned>(K), kThreads, 0, stream>>>(table, index, y, D, D + row_gap);
    return hipGetLastError();
}
