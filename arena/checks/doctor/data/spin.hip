// Spins until the device's own wall clock, which ticks at 100 MHz, has gone on by `ticks`.
#include "task.h"

__global__ void spin_kernel(const float* x, float* y, int64_t ticks) {
    const long long begin = wall_clock64();
    long long passed = 0;
    while (passed < ticks) passed = wall_clock64() - begin;
    *y = *x + static_cast<float>(passed >= ticks);
}

extern "C" hipError_t spin(const float* x, float* y, int64_t K, hipStream_t stream) {
    spin_kernel<<<dim3(1), dim3(1), 0, stream>>>(x, y, K);
    return hipGetLastError();
}
