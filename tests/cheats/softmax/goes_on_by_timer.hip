// expect: rule_violation. A timer would have its host thread go on where it is stopped for the baseline; it answers only if it could (cheat 72).
#include <signal.h>
#include <time.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGCONT;
    timer_t timer;
    allowed = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 || kill(0, SIGCONT) == 0 || raise(SIGCONT) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
