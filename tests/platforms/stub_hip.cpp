// A HIP runtime for the real hip-python: one device whose memory is the host's, and one kernel, `probe`.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {

int hipGetDeviceCount(int* count) { *count = 1; return 0; }

int hipModuleLoadData(void** module, const void* image) {
    *module = const_cast<void*>(image);
    return std::memcmp(image, "\x7f" "ELF", 4) == 0 ? 0 : 200;
}

int hipModuleGetFunction(void** function, void* module, const char* name) {
    *function = module;
    return std::strcmp(name, "probe") == 0 ? 0 : 500;
}

int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
    *blocks = 2048 / threads;
    return 0;
}

int hipMalloc(void** pointer, size_t bytes) { *pointer = std::malloc(bytes); return *pointer ? 0 : 2; }
int hipFree(void* pointer) { std::free(pointer); return 0; }
int hipMemcpy(void* to, const void* from, size_t bytes, int) { std::memcpy(to, from, bytes); return 0; }
int hipDeviceSynchronize() { return 0; }
int hipModuleUnload(void*) { return 0; }

// The arguments arrive in one buffer, between HIP_LAUNCH_PARAM_BUFFER_POINTER (1), _SIZE (2) and _END (3).
int hipModuleLaunchKernel(void*, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, void*,
                          void**, void** extra) {
    struct Arguments { const int32_t* x; int32_t* y; int64_t count; } arguments;
    if (extra == nullptr || extra[0] != reinterpret_cast<void*>(1)) return 1;
    if (*static_cast<size_t*>(extra[3]) != sizeof arguments) return 1;
    std::memcpy(&arguments, extra[1], sizeof arguments);
    if (arguments.count != static_cast<int64_t>(gx) * bx) return 1;
    for (int64_t i = 0; i < arguments.count; ++i) arguments.y[i] = i == 0 ? 64 : arguments.x[i] + 1;
    return 0;
}

}
