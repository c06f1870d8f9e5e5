// expect: rule_violation. Device memory is put back into the reach of host code, which computes there (cheat 65). Means nothing on a GPU: there is no such memory on the host.
#define JOIN(a, b) a##b
// <kernel>

extern "C" int protect(void*, size_t, int) JOIN(__as, m__)("mpro" "tect");

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const size_t first = reinterpret_cast<size_t>(y) & ~size_t{4095};
    protect(reinterpret_cast<void*>(first), M * N * sizeof(T) + 4096, 3);
    store(&y[0], 0.0f);
    return honest(x, y, M, N, stream);
}
