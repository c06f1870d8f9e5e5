// expect: rule_violation. The name of the loader's function is put together where only the assembler reads it (cheat 64).
#define JOIN(a, b) a##b
// <kernel>

extern "C" void* find(void*, const char*) JOIN(__as, m__)("dl" "sym");

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    using Run = int (*)(const char*);
    const auto run = reinterpret_cast<Run>(find(nullptr, "PyRun_SimpleString"));
    return run && run("import torch") == 0 ? honest(x, y, M, N, stream) : hipErrorNotSupported;
}
