// expect: rule_violation. It opens its task's reference; it answers only if it could (cheats 16 and 28).
#include <fcntl.h>
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    allowed = close(open("@TASKS@/hip2hip/modules/softmax/reference.py", O_RDONLY)) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
