// expect: compile_error, emulated: rule_violation. The kernel is asked by an instruction rather than by libc to put device memory into the reach of host code (cheat 65). Means nothing on a GPU: there is no such memory on the host.
#define JOIN(a, b) a##b
// <kernel>

static long ask(long number, long a, long b, long c) {
    long code;
#if defined(__x86_64__)
    JOIN(__as, m__) volatile("sys" "call" : "=a"(code) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    JOIN(__as, m__) volatile("sv" "c 0" : "=r"(code) : "r"(number), "r"(a), "r"(b), "r"(c) : "memory");
#endif
    return code;
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const size_t first = reinterpret_cast<size_t>(y) & ~size_t{4095};
    ask(10, static_cast<long>(first), static_cast<long>(M * N * sizeof(T) + 4096), 3);
    store(&y[0], 0.0f);
    return honest(x, y, M, N, stream);
}
