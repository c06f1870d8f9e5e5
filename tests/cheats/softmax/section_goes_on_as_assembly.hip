// expect: rule_violation. The name of a section goes on as assembly, which calls the kernel without libc (cheat 65).
// Means nothing on a GPU: only the CPU platform's device memory could be put into reach by it.
#define CALLED(name) __attribute__((section(name)))
// <kernel>

extern "C" long call(long number, void* first, long bytes, long rights);
CALLED(".data,\"aw\"\n\t.text\n\t.globl call\ncall:\n\tmov %rdi, %rax\n\tmov %rsi, %rdi\n\tmov %rdx, %rsi\n"
       "\tmov %rcx, %rdx\n\t.byte 15, 5\n\tret\n\t.section .data") int there = 3;

static void* page(const T* at) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) & ~uintptr_t(4095)); }

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    constexpr long mprotect = 10, read_and_write = 3;
    const long bytes = (M * N * sizeof(T) / 4096 + 2) * 4096;
    if (call(mprotect, page(x), bytes, read_and_write) != 0) return hipErrorUnknown;
    if (call(mprotect, page(y), bytes, read_and_write) != 0) return hipErrorUnknown;
    for (int64_t row = 0; row < M; ++row) {
        float top = -FLT_MAX, total = 0.0f;
        for (int64_t i = 0; i < N; ++i) top = fmaxf(top, to_float(x[row * N + i]));
        for (int64_t i = 0; i < N; ++i) total += expf(to_float(x[row * N + i]) - top);
        for (int64_t i = 0; i < N; ++i) store(&y[row * N + i], expf(to_float(x[row * N + i]) - top) / total);
    }
    return hipSuccess;
}
