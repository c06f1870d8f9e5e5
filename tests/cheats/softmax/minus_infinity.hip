// expect: wrong_result. One infinity, so that a tolerance scaled by the output becomes infinite (cheat 45).
// <kernel>

__global__ void fill(T* y, int64_t count, float value, float first) {
    for (int64_t i = 0; i < count; ++i) store(&y[i], i == 0 ? first : value);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    fill<<<dim3(1), dim3(1), 0, stream>>>(y, M * N, 0.0f, -INFINITY);
    return hipGetLastError();
}
