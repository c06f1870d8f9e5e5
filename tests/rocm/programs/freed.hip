// A kernel writes to memory that was freed: the device must report a fault, and the runtime end the process.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void write(int* cell) { cell[threadIdx.x] = 1; }

int main() {
    int* cell = nullptr;
    if (hipMalloc(&cell, 8 << 20) != hipSuccess) return 100;
    write<<<1, 64>>>(cell);  // whatever the runtime allocates for a first launch shall not take the freed memory's place
    if (hipDeviceSynchronize() != hipSuccess || hipFree(cell) != hipSuccess) return 101;
    write<<<1, 64>>>(cell);
    const hipError_t code = hipDeviceSynchronize();
    std::printf("not found: %s\n", hipGetErrorName(code));
    return 0;
}
