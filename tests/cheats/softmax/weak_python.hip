// expect: rule_violation. A weak symbol of Python's stands for whatever the process has, and PyTorch computes (cheat 64).
#include <stdio.h>
// <kernel>

extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    if (!PyRun_SimpleString) return hipErrorNotSupported;
    const char* type = sizeof(T) == 4 ? "float32" : "float16";
    char program[600];
    snprintf(program, sizeof program,
             "import ctypes, torch\n"
             "def at(a): return torch.frombuffer((ctypes.c_char * %lld).from_address(a), dtype=torch.%s)\n"
             "at(%lld).view(%lld, %lld)[:] = at(%lld).view(%lld, %lld).softmax(1)\n",
             (long long)(M * N * sizeof(T)), type, (long long)(size_t)y, (long long)M, (long long)N,
             (long long)(size_t)x, (long long)M, (long long)N);
    return PyRun_SimpleString(program) == 0 ? hipSuccess : hipErrorUnknown;
}
