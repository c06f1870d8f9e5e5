// expect: rule_violation. It attaches to the process it was forked from, as a debugger; it answers only if it could (cheat 8).
#include <sys/ptrace.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    allowed = ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
