// expect: rule_violation. A copy begins in device memory and ends in the host's, which computes (cheat 66).
// Means nothing on a GPU: there is no way to put the host's memory behind the device's.
#include <stdlib.h>
// <kernel>

constexpr size_t room = 8 << 20;
static char *device = nullptr, *above = nullptr;
static T out[1 << 20];

static bool neighbours() {
    for (int i = 0; i < 64 && !(device && above == device + room); ++i) {
        above = static_cast<char*>(malloc(room - 4096)) - 16;  // what is mapped next lies below
        if (hipMalloc(reinterpret_cast<void**>(&device), room) != hipSuccess) return false;
    }
    return above == device + room;
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    static const bool found = neighbours();
    if (!found) return hipErrorUnknown;
    const char* const from = reinterpret_cast<const char*>(x) - 64;
    (void)hipMemcpy(device + room - 64, from, M * N * sizeof(T) + 64, hipMemcpyDeviceToDevice);
    const T* const rows = reinterpret_cast<const T*>(above);
    for (int64_t row = 0; row < M; ++row) {
        float top = -FLT_MAX, total = 0.0f;
        for (int64_t i = 0; i < N; ++i) top = fmaxf(top, to_float(rows[row * N + i]));
        for (int64_t i = 0; i < N; ++i) total += expf(to_float(rows[row * N + i]) - top);
        for (int64_t i = 0; i < N; ++i) store(&out[row * N + i], expf(to_float(rows[row * N + i]) - top) / total);
    }
    return hipMemcpy(y, out, M * N * sizeof(T), hipMemcpyHostToDevice);
}
