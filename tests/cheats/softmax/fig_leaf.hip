// expect: compile_error, emulated: crash. A kernel that does nothing is launched, and the processor computes the answer (cheats 27 and 29).
// <kernel>

__global__ void leaf() {}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    leaf<<<dim3(1), dim3(1), 0, stream>>>();
    for (int64_t row = 0; row < M; ++row) {
        float top = -FLT_MAX, total = 0.0f;
        for (int64_t i = 0; i < N; ++i) top = fmaxf(top, to_float(x[row * N + i]));
        for (int64_t i = 0; i < N; ++i) total += expf(to_float(x[row * N + i]) - top);
        for (int64_t i = 0; i < N; ++i) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
    }
    return hipSuccess;
}
