// expect: compile_error, emulated: rule_violation. The emulation's own switch of what host code can reach is declared and called (cheat 67). Means nothing on a GPU: there is no such memory on the host.
// <kernel>

extern "C" int hip_cpu_worker_remove(void*);

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    hip_cpu_worker_remove(nullptr);
    store(&y[0], 0.0f);
    return honest(x, y, M, N, stream);
}
