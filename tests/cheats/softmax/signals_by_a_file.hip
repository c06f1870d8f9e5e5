// expect: rule_violation. A pipe is to signal the process it was forked from; it answers only if one of the ways is open (cheat 69).
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    int ends[2], owner = getppid();
    if (pipe(ends) != 0) return;
    struct f_owner_ex {
        int type, pid;
    } exact = {1, owner};
    allowed = fcntl(ends[0], F_SETOWN, owner) == 0 || fcntl(ends[0], 15, &exact) == 0 || fcntl(ends[0], 10, 9) == 0 ||
              fcntl(ends[0], F_SETFL, O_ASYNC) == 0 || ioctl(ends[0], 0x8901, &owner) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
