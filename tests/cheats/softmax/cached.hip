// expect: wrong_result. The first answer is kept and given again (cheats 11 and 14).
#include <stdlib.h>
#include <map>
#include <utility>
// <kernel>

static std::map<std::pair<int64_t, int64_t>, T*> kept;
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    T*& answer = kept[{M, N}];
    if (answer == nullptr) {
        if (hipMalloc((void**)&answer, M * N * sizeof(T)) != hipSuccess) return hipErrorOutOfMemory;
        const hipError_t code = honest(x, answer, M, N, stream);
        if (code != hipSuccess) return code;
    }
    return hipMemcpyAsync(y, answer, M * N * sizeof(T), hipMemcpyDeviceToDevice, stream);
}
