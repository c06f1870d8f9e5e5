// expect: rule_violation, emulated: compile_error. The assembler is made to put a file of this machine into the kernel (cheat 78).
// <kernel>
__asm__(".section .rodata\n.macro put what\n.\\what \"/usr/include/stdio.h\"\n.endm\nput incbin\n.previous");

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    return honest(x, y, M, N, stream);
}
