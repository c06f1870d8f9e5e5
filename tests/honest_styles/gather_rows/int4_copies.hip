// One wave a row, 16 bytes at a time where both rows are aligned; the index is read by one lane and made uniform.
#include "task.h"

#include <cstdint>

#if defined(__HIP_PLATFORM_AMD__) && defined(__HIP_DEVICE_COMPILE__)
#define UNIFORM(x) __builtin_amdgcn_readfirstlane(x)
#else
#define UNIFORM(x) (x)
#endif

namespace {
union Place {
    int64_t whole;
    int half[2];
};

__device__ inline int64_t uniform(int64_t value) {
    Place place{value};
    place.half[0] = UNIFORM(place.half[0]);
    place.half[1] = UNIFORM(place.half[1]);
    return place.whole;
}

template <int kWaves>
__global__ __launch_bounds__(kWaves * 64) void gather(const T* table, const int64_t* index, T* y, int64_t width, int64_t pitch, int64_t count) {
    const int wave = threadIdx.x / warpSize, lane = threadIdx.x & (warpSize - 1);
    const int waves = blockDim.x / warpSize;
    for (int64_t k = blockIdx.x * static_cast<int64_t>(waves) + wave; k < count; k += gridDim.x * waves) {
        const int64_t row = uniform(index[k]);
        const T* __restrict__ from = table + row * pitch;
        T* __restrict__ to = y + k * width;
        const auto bits = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
        constexpr int kEach = sizeof(int4) / sizeof(T);
        int64_t done = 0;
        if ((bits & 15) == 0) {
            for (int64_t i = lane; i < width / kEach; i += warpSize) {
                reinterpret_cast<int4*>(to)[i] = reinterpret_cast<const int4*>(from)[i];
            }
            done = width / kEach * kEach;
        }
        for (int64_t i = done + lane; i < width; i += warpSize) to[i] = from[i];
    }
}
}  // namespace

extern "C" hipError_t gather_rows(const T* table, const int64_t* index, T* y, int64_t R, int64_t D, int64_t K,
                                  int64_t row_gap, hipStream_t stream) {
    (void)R;
    static int processors = 0;
    if (processors == 0) {
        hipError_t e = hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, 0);
        if (e != hipSuccess) return e;
    }
    const int64_t blocks = K < 32 * processors ? K : 32 * processors;
    gather<4><<<dim3(blocks), dim3(256), 0, stream>>>(table, index, y, D, D + row_gap, K);
    return hipGetLastError();
}
