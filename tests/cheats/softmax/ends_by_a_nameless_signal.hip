// expect: rule_violation. It ends by a real-time signal, for which Python has no name (cheat 74).
#include <csignal>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    std::raise(40);
    return honest(x, y, M, N, stream);
}
