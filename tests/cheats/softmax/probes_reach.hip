// expect: launch_error. It asks by a write to its log whether the host can read device memory, and has the host compute where it can; it answers only if it could (cheat 68).
#include <stdio.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    if (fwrite(x, 1, 8192, stdout) != 8192) return hipErrorNotSupported;
    return honest(x, y, M, N, stream);
}
