// expect: wrong_result. The memory around the output is searched for rows that add up to one (cheats 16 and 36).
// <kernel>

__global__ void search(T* y, int64_t M, int64_t N) {
    for (int64_t at = -1024; at < 1024; ++at) {
        float total = 0.0f;
        for (int64_t i = 0; i < N; ++i) total += to_float(y[at + i]);
        if (fabsf(total - 1.0f) < 1e-3f) {
            for (int64_t i = 0; i < M * N; ++i) y[i] = y[at + i];
            return;
        }
    }
    for (int64_t i = 0; i < M * N; ++i) store(&y[i], 0.0f);
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    search<<<dim3(1), dim3(1), 0, stream>>>(y, M, N);
    return hipGetLastError();
}
