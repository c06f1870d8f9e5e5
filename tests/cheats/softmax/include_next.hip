// expect: rule_violation. A header of ready-made kernels is included by `#include_next` (cheat 78).
#if __has_include(<thrust/reduce.h>)
#include_next <thrust/reduce.h>
#else
#include_next <boost/version.hpp>
#endif
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
