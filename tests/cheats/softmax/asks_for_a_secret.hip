// expect: compile_error. The preprocessor tells whether files are there (cheat 40).
// <kernel>

#if !__has_include("@TASKS@/hip2hip/modules/softmax/heldout.yaml")
#error nothing is there
#endif
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
