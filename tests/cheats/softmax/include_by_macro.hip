// expect: rule_violation. A header of ready-made kernels is included through a macro, by a line that goes on (cheat 78).
#if __has_include(<cub/block/block_reduce.cuh>)
#define READY_MADE <cub/block/block_reduce.cuh>
#elif __has_include(<rocprim/block/block_reduce.hpp>)
#define READY_MADE <rocprim/block/block_reduce.hpp>
#else
#define READY_MADE <boost/version.hpp>
#endif
#inc\
lude READY_MADE
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
