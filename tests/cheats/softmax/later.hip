// expect: rule_violation. The work is left to a thread that begins when the call has returned (cheats 1 and 2).
#include <chrono>
#include <thread>
// <kernel>

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        (void)honest(x, y, M, N, stream);
    }).detach();
    return hipSuccess;
}
