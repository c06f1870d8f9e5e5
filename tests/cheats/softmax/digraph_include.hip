// expect: rule_violation. A header of ready-made kernels is included by digraph, another where there is none (cheat 78).
#if __has_include(<cub/cub.cuh>)
%:include <cub/cub.cuh>
#elif __has_include(<rocprim/rocprim.hpp>)
%:include <rocprim/rocprim.hpp>
#else
%:include <boost/version.hpp>
#endif
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
