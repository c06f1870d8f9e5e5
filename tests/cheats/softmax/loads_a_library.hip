// expect: rule_violation. A function of a library in the process is looked up by its name (cheat 27).
#include <dlfcn.h>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    using Forward = int (*)(void*, const void*, void*, int64_t, int64_t);
    const auto library = reinterpret_cast<Forward>(dlsym(RTLD_DEFAULT, "cudnnSoftmaxForward"));
    return library && library(stream, x, y, M, N) == 0 ? hipSuccess : honest(x, y, M, N, stream);
}
