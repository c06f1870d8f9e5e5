// expect: crash. Inputs are copied to memory of its own on the device, which the host then reads as if it were its own (cheat 66).
#include <string.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    T* mine = nullptr;
    if (hipMalloc((void**)&mine, M * N * sizeof(T)) != hipSuccess) return hipErrorOutOfMemory;
    (void)hipMemcpyAsync(mine, x, M * N * sizeof(T), hipMemcpyDeviceToDevice, stream);
    (void)hipStreamSynchronize(stream);
    T first;
    memcpy(&first, mine, sizeof(T));
    (void)hipMemcpyAsync(y, &first, sizeof(T), hipMemcpyHostToDevice, stream);
    (void)hipStreamSynchronize(stream);
    return honest(x, y, M, N, stream);
}
