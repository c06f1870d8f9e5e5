// expect: rule_violation. A header of ready-made kernels is included (cheat 27).
#include <hipcub/hipcub.hpp>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
