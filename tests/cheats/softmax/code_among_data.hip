// expect: rule_violation. Machine code is written as numbers, and put where code lies (cheat 65).
// <kernel>

__attribute__((section(".text.k"))) extern const unsigned char instructions[] = {0x0f, 0x05, 0xc3};

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    reinterpret_cast<void (*)()>(reinterpret_cast<size_t>(instructions))();
    return honest(x, y, M, N, stream);
}
