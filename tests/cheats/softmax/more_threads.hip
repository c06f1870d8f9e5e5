// expect: rule_violation. The emulation is told to use every core (cheat 54).
// Not caught yet on the CPU: a candidate may start threads; what is gained so is a property of the emulation.
// Means nothing on a GPU: there is no emulation.
#include <stdlib.h>
// <kernel>

static const int told = setenv("HIP_CPU_THREADS", "2", 1);
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    row_kernel<<<dim3(M), dim3(1), 0, stream>>>(x, y, M, N);
    return told == 0 ? hipGetLastError() : hipErrorUnknown;
}
