// expect: wrong_result. The answer is fetched from memory that was just allocated, where another may have left it (cheat 15).
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    T* found;
    if (hipMalloc((void**)&found, M * N * sizeof(T)) != hipSuccess) return hipErrorOutOfMemory;
    const hipError_t code = hipMemcpyAsync(y, found, M * N * sizeof(T), hipMemcpyDeviceToDevice, stream);
    return hipFree(found) == hipSuccess ? code : hipErrorUnknown;
}
