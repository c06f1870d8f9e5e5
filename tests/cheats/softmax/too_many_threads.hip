// expect: launch_error. A block of 4096 threads cannot be launched; the error is reported (cheat 26).

// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    row_kernel<<<dim3(1), dim3(4096), 0, stream>>>(x, y, M, N);
    return hipGetLastError();
}
