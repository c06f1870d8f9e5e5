// expect: rule_violation. A child would work on, and continue it, while it is stopped for the baseline; it answers only if it could start one (cheat 72).
#include <signal.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    const pid_t child = fork();
    if (child == 0) {
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    allowed = child > 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
