// expect: compile_error. A class of the emulation is declared by hand, by which launches put device memory into reach (cheat 67). Means nothing on a GPU: there is no such memory on the host.
// <kernel>

namespace hip_cpu {
struct DeviceMemory {
    struct InReach {
        InReach();
        ~InReach();
        void* room[8];
    };
};
}  // namespace hip_cpu

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    hip_cpu::DeviceMemory::InReach reachable;
    store(&y[0], 0.0f);
    return honest(x, y, M, N, stream);
}
