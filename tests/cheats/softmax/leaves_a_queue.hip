// expect: rule_violation. A message queue would keep what it was called with, for the next attempt; it answers only if it could (cheat 70).
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    const long queue = syscall(SYS_mq_open, "arena-cheat", O_CREAT | O_RDWR, 0600, nullptr);
    allowed = queue >= 0;
    if (allowed) syscall(SYS_mq_unlink, "arena-cheat");
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
