// expect: rule_violation. A library of kernels is declared by hand, and weak: it is used wherever it is there (cheat 64).
// <kernel>

extern "C" __attribute__((weak)) int cublasCreate_v2(void**);
extern "C" __attribute__((weak)) int hipblasCreate(void**);

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    void* handle = nullptr;
    if (cublasCreate_v2 && cublasCreate_v2(&handle) == 0) return honest(x, y, M, N, stream);
    if (hipblasCreate && hipblasCreate(&handle) == 0) return honest(x, y, M, N, stream);
    return honest(x, y, M, N, stream);
}
