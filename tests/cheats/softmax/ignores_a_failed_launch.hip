// expect: wrong_result. More shared memory than there is, and the error is kept quiet (cheat 26).
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    row_kernel<<<dim3(1), dim3(64), 1 << 20, stream>>>(x, y, M, N);
    (void)hipGetLastError();
    return hipSuccess;
}
