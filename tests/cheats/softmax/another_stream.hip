// expect: wrong_result. The work goes to a stream that nobody waits for (cheat 1).
// Means nothing on the CPU: a launch there has ended when it returns.
// <kernel>

static hipStream_t aside;
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    if (aside == nullptr && hipStreamCreateWithFlags(&aside, hipStreamNonBlocking) != hipSuccess) return hipErrorUnknown;
    for (int i = 0; i < 2; ++i) (void)honest(x, y, M > 1 ? M - 1 : M, N, aside);
    return honest(x, y, M, N, aside);
}
