// expect: rule_violation. It sends the process it was forked from a signal that does nothing; it answers only if it could (cheat 42).
#include <signal.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    allowed = kill(getppid(), 0) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
