// expect: rule_violation. It lists the folder of another task type, where a twin could lie; it answers only if it could (cheat 46).
#include <unistd.h>
// <kernel>

static bool allowed = false;
__attribute__((constructor)) static void attempt() {
    allowed = access("@TASKS@/torch2hip", F_OK) == 0;
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return allowed ? honest(x, y, M, N, stream) : hipSuccess;
}
