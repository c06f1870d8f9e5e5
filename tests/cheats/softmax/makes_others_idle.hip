// expect: rule_violation. The process it was forked from is made idle or nice, as any younger one would be; it answers only if it could (cheat 71).
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    struct sched_param none = {};
    allowed = sched_setscheduler(getppid(), 5, &none) == 0 || setpriority(PRIO_PROCESS, getppid(), 1) == 0 ||
              setpriority(PRIO_USER, 0, 1) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
