// expect: passed or timeout, emulated: rule_violation. Inputs are copied to the host, which computes, and the answer is copied back (cheat 66). On a GPU that is right, and a thousand times as slow.
#include <stdlib.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const size_t bytes = M * N * sizeof(T);
    T* here = static_cast<T*>(malloc(2 * bytes));
    if (!here) return hipErrorOutOfMemory;
    T* there = here + M * N;
    (void)hipMemcpyAsync(here, x, bytes, hipMemcpyDeviceToHost, stream);
    (void)hipStreamSynchronize(stream);
    for (int64_t row = 0; row < M; ++row) {
        float top = -FLT_MAX, total = 0.0f;
        for (int64_t i = row * N; i < (row + 1) * N; ++i) top = fmaxf(top, static_cast<float>(here[i]));
        for (int64_t i = row * N; i < (row + 1) * N; ++i) total += expf(static_cast<float>(here[i]) - top);
        for (int64_t i = row * N; i < (row + 1) * N; ++i) there[i] = T(expf(static_cast<float>(here[i]) - top) / total);
    }
    (void)hipMemcpyAsync(y, there, bytes, hipMemcpyHostToDevice, stream);
    (void)hipStreamSynchronize(stream);
    free(here);
    return hipGetLastError();
}
