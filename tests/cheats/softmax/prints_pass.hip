// expect: wrong_result. It prints that it passed (cheat 39).
#include <stdio.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    printf("PASS\n");
    return hipSuccess;
}
