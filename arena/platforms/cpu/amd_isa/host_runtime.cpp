// A stand-in for HIP's runtime library: what clang's host code for a HIP file calls, handed on to callbacks.
// It defines what kernels' host functions need; a library that needs more does not load, and says what it lacks.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

struct Size3 {
    std::uint32_t x, y, z;
};

struct Callbacks {
    int (*launch)(const void* host_function, const Size3* grid, const Size3* block, void** arguments,
                  std::size_t dynamic_lds);
    void (*add_function)(const void* fat_binary, const void* host_function, const char* name);
    void (*add_variable)(const void* fat_binary, const void* host_variable, const char* name, std::size_t bytes);
    void* (*variable)(const void* host_variable);
    void* (*allocate)(std::size_t bytes);
    int (*release)(void* pointer);
};

static Callbacks callbacks;
static int last_error;

struct Configuration {
    Size3 grid, block;
    std::size_t dynamic_lds;
    void* stream;
};
static Configuration pushed[16];
static unsigned depth;

static int noted(int code) {
    if (code != 0) last_error = code;
    return code;
}

void arena_set_callbacks(const Callbacks* given) {
    callbacks = *given;
    last_error = 0, depth = 0;  // of the host before
}

// --- what clang itself calls

struct Wrapper {
    std::uint32_t magic, version;
    const void* binary;
    const void* unused;
};

void** __hipRegisterFatBinary(const void* wrapper) {
    return reinterpret_cast<void**>(const_cast<void*>(static_cast<const Wrapper*>(wrapper)->binary));
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void** module, const void* host_function, char*, const char* name, unsigned, void*, void*,
                           void*, void*, int*) {
    callbacks.add_function(module, host_function, name);
}
void __hipRegisterVar(void** module, void* host_variable, char*, char* name, int, std::size_t bytes, int, int) {
    callbacks.add_variable(module, host_variable, name, bytes);
}

int __hipPushCallConfiguration(Size3 grid, Size3 block, std::size_t dynamic_lds, void* stream) {
    if (depth == sizeof pushed / sizeof *pushed) return 1;
    pushed[depth++] = {grid, block, dynamic_lds, stream};
    return 0;
}
int __hipPopCallConfiguration(Size3* grid, Size3* block, std::size_t* dynamic_lds, void** stream) {
    if (depth == 0) return 1;
    const Configuration& top = pushed[--depth];
    *grid = top.grid, *block = top.block, *dynamic_lds = top.dynamic_lds, *stream = top.stream;
    return 0;
}
int hipLaunchKernel(const void* host_function, Size3 grid, Size3 block, void** arguments, std::size_t dynamic_lds,
                    void*) {
    return noted(callbacks.launch(host_function, &grid, &block, arguments, dynamic_lds));
}

// --- what host functions call; everything is synchronous, and device memory is memory of this process

int hipGetLastError() {
    const int code = last_error;
    last_error = 0;
    return code;
}
int hipPeekAtLastError() { return last_error; }
int hipMalloc(void** pointer, std::size_t bytes) {
    *pointer = callbacks.allocate(bytes);
    return noted(*pointer == nullptr && bytes != 0 ? 2 : 0);
}
int hipFree(void* pointer) { return noted(callbacks.release(pointer)); }
int hipMallocAsync(void** pointer, std::size_t bytes, void*) { return hipMalloc(pointer, bytes); }
int hipFreeAsync(void* pointer, void*) { return hipFree(pointer); }
int hipMemset(void* to, int value, std::size_t bytes) { return std::memset(to, value, bytes), 0; }
int hipMemsetAsync(void* to, int value, std::size_t bytes, void*) { return hipMemset(to, value, bytes); }
int hipMemcpy(void* to, const void* from, std::size_t bytes, int) { return std::memmove(to, from, bytes), 0; }
int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void*) {
    return hipMemcpy(to, from, bytes, kind);
}
int hipGetSymbolAddress(void** pointer, const void* symbol) {
    *pointer = callbacks.variable(symbol);
    return noted(*pointer == nullptr ? 13 : 0);
}
int hipMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int) {
    void* to = callbacks.variable(symbol);
    if (to == nullptr) return noted(13);
    return hipMemcpy(static_cast<char*>(to) + offset, from, bytes, 0);
}
int hipMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind,
                           void*) {
    return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
int hipFuncSetAttribute(const void*, int, int) { return 0; }
int hipGetDevice(int* device) { return *device = 0; }
int hipSetDevice(int) { return 0; }
int hipDeviceSynchronize() { return 0; }
int hipStreamSynchronize(void*) { return 0; }
}
