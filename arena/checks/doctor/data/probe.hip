// Says what a wave is on this device, and shows that a host reads what the judge wrote and the judge what the host did.
#include <hip/hip_runtime.h>
#include <stdint.h>

__global__ void probe_kernel(const int* x, int* y, int64_t count) {
    const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (i < count) y[i] = i == 0 ? warpSize : x[i] + 1;
}

extern "C" hipError_t arena_probe(const int* x, int* y, int64_t count, hipStream_t stream) {
    probe_kernel<<<dim3((count + 255) / 256), dim3(256), 0, stream>>>(x, y, count);
    return hipGetLastError();
}
