// Four elements at a time where the pointers allow it, in a grid-stride loop; the rest one by one.
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace {

constexpr int kThreads = 256;

template <typename E, int N>
struct alignas(sizeof(E) * N) Pack {
    E data[N];
};

struct Silu {
    __device__ __forceinline__ float operator()(float x) const { return __fdividef(x, 1.0f + __expf(-x)); }
};

template <typename E, typename Op>
__global__ void __launch_bounds__(kThreads) map_kernel(const E* __restrict__ in, E* __restrict__ out, size_t n, bool aligned, Op op) {
    static_assert(sizeof(E) == 2 || sizeof(E) == 4, "16 or 32 bits");
    using Vector = Pack<E, 4>;
    const size_t first = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    size_t done = 0;
    if (aligned) {
        const size_t vectors = n / 4;
        auto* from = reinterpret_cast<const Vector*>(in);
        auto* to = reinterpret_cast<Vector*>(out);
        for (size_t i = first; i < vectors; i += step) {
            Vector v = from[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if constexpr (std::is_same_v<E, float>) {
                    v.data[j] = op(v.data[j]);
                } else {
                    v.data[j] = static_cast<E>(op(static_cast<float>(v.data[j])));
                }
            }
            to[i] = v;
        }
        done = vectors * 4;
    }
    for (size_t i = done + first; i < n; i += step) out[i] = static_cast<E>(op(static_cast<float>(in[i])));
}

inline bool is_aligned(const void* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

}  // namespace

#define HIP_TRY(call)                                  \
    do {                                               \
        hipError_t error_ = (call);                    \
        if (error_ != hipSuccess) return error_;       \
    } while (0)

extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const size_t n = static_cast<size_t>(M * N);
    int device = 0;
    HIP_TRY(hipGetDevice(&device));
    hipDeviceProp_t props;
    HIP_TRY(hipGetDeviceProperties(&props, device));
    int per_processor = 0;
    HIP_TRY(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, map_kernel<T, Silu>, kThreads, 0));
    const int most = std::max(1, props.multiProcessorCount * per_processor);
    const int blocks = std::min<int64_t>((n / 4 + kThreads) / kThreads, most);
    const bool aligned = is_aligned(x, sizeof(T) * 4) && is_aligned(y, 4 * sizeof(T));
    hipLaunchKernelGGL((map_kernel<T, Silu>), dim3(blocks), dim3(kThreads), 0, stream, x, y, n, aligned, Silu{});
    HIP_TRY(hipPeekAtLastError());
    return hipSuccess;
}
