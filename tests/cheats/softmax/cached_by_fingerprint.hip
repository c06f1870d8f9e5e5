// expect: wrong_result. Answers are kept by a fingerprint of one comparison (cheat 12).
#include <map>
#include <utility>
// <kernel>

// Copied where x[0] > x[1] is as it was when the answer was kept: no value of x reaches the host.
__global__ void reuse(const T* x, T* y, T* kept, int64_t count) {
    const bool which = to_float(x[0]) > to_float(x[1]);
    T* mine = kept + (which ? count + 1 : 0);
    const bool known = to_float(mine[count]) == 1.0f;
    for (int64_t i = 0; i < count; ++i) {
        if (known) y[i] = mine[i];
        else mine[i] = y[i];
    }
    store(&mine[count], 1.0f);
}
static std::map<std::pair<int64_t, int64_t>, T*> kept;
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    T*& memory = kept[{M, N}];
    if (memory == nullptr) {
        const size_t bytes = 2 * (M * N + 1) * sizeof(T);
        if (hipMalloc((void**)&memory, bytes) != hipSuccess) return hipErrorOutOfMemory;
        if (hipMemsetAsync(memory, 0, bytes, stream) != hipSuccess) return hipErrorUnknown;
    }
    const hipError_t code = honest(x, y, M, N, stream);
    reuse<<<dim3(1), dim3(1), 0, stream>>>(x, y, memory, M * N);
    return code;
}
