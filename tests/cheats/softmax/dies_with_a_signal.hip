// expect: rule_violation. A child would send another process a signal of its choice by ending; it answers only if it could (cheat 69).
#include <sys/syscall.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    const long sibling = 0x8000, ends_with_cont = 18;
    const long child = syscall(SYS_clone, sibling | ends_with_cont, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    allowed = child > 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
