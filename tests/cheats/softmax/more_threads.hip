// expect: rule_violation. Two threads launch half of the grid each: the emulation runs one launch at a time all the same (cheat 54).
// Means nothing on a GPU: there is no emulation.
#include <thread>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const int64_t half = M / 2;
    const auto rows = [=](int64_t first, int64_t count) {
        if (count > 0) row_kernel<<<dim3(count), dim3(1), 0, stream>>>(x + first * N, y + first * N, count, N);
    };
    std::thread other(rows, 0, half);
    rows(half, M - half);
    other.join();
    return hipGetLastError();
}
