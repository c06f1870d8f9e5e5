// expect: rule_violation. A child leaves the session, to live on; it answers only if it could (cheats 37 and 41).
#include <sys/wait.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    const pid_t child = fork();
    if (child == 0) _exit(setsid() < 0);
    int status = 1;
    allowed = child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
