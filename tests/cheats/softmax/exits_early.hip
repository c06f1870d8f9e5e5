// expect: crash. It leaves with exit code 0 in the middle of a call (cheat 31).
#include <stdlib.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    _Exit(0);
}
