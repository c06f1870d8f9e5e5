// expect: compile_error. What the compiler quotes of it would clear the reader's screen (cheat 76).
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
#error "[2J]0;passed"
}
