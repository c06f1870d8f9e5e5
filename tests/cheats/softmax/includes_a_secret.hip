// expect: compile_error. The compiler is asked to put the held-out cases into the library (cheat 40).
// <kernel>

asm(".section .rodata\nsecret: .incbin \"@TASKS@/hip2hip/modules/softmax/heldout.yaml\"\n.text\n");
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
