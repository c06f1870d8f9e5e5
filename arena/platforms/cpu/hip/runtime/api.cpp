// Errors, memory and device facts of the CPU as a HIP device.
#include "hip_cpu/api.h"

#include <unistd.h>

#include "memory.h"
#include "scheduler.h"
#include "worker.h"

namespace hip_cpu {
hipError_t& last_error();
bool runs_nothing() noexcept;

hipError_t device_properties(hipDeviceProp_t* properties, int device, int wave_size) {
    if (!properties) return hipErrorInvalidValue;
    if (device != 0) return hipErrorInvalidDevice;
    hipDeviceProp_t p{};
    std::strcpy(p.name, "HIP on CPU");
    std::strcpy(p.gcnArchName, "cpu");
    p.totalGlobalMem = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
    p.sharedMemPerBlock = p.sharedMemPerMultiprocessor = p.maxSharedMemoryPerMultiProcessor = max_shared_bytes;
    p.regsPerBlock = 65536;
    p.warpSize = wave_size;
    p.maxThreadsPerBlock = p.maxThreadsPerMultiProcessor = max_block_threads;
    for (int& limit : p.maxThreadsDim) limit = max_block_threads;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.clockRate = 1000000;
    p.multiProcessorCount = 1;  // blocks run one after the other
    p.l2CacheSize = 1 << 20;
    *properties = p;
    return hipSuccess;
}

hipError_t device_attribute(int* value, hipDeviceAttribute_t attribute, int device, int wave_size) {
    hipDeviceProp_t p;
    const hipError_t error = value ? device_properties(&p, device, wave_size) : hipErrorInvalidValue;
    if (error != hipSuccess) return error;
    switch (attribute) {
        case hipDeviceAttributeMultiprocessorCount: *value = p.multiProcessorCount; break;
        case hipDeviceAttributeWarpSize: *value = p.warpSize; break;
        case hipDeviceAttributeMaxThreadsPerBlock:
        case hipDeviceAttributeMaxThreadsPerMultiProcessor:
        case hipDeviceAttributeMaxBlockDimX:
        case hipDeviceAttributeMaxBlockDimY:
        case hipDeviceAttributeMaxBlockDimZ: *value = p.maxThreadsPerBlock; break;
        case hipDeviceAttributeMaxGridDimX: *value = p.maxGridSize[0]; break;
        case hipDeviceAttributeMaxGridDimY:
        case hipDeviceAttributeMaxGridDimZ: *value = p.maxGridSize[1]; break;
        case hipDeviceAttributeMaxSharedMemoryPerBlock:
        case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *value = max_shared_bytes; break;
        case hipDeviceAttributeMaxRegistersPerBlock: *value = p.regsPerBlock; break;
        case hipDeviceAttributeClockRate:
        case hipDeviceAttributeWallClockRate: *value = p.clockRate; break;
        case hipDeviceAttributeL2CacheSize: *value = p.l2CacheSize; break;
        default: *value = 0;
    }
    return hipSuccess;
}

hipError_t resident_blocks(int* blocks, int block_size, std::size_t shared_bytes) {
    if (!blocks || block_size <= 0) return hipErrorInvalidValue;
    const bool fits = block_size <= static_cast<int>(max_block_threads) && shared_bytes <= max_shared_bytes;
    *blocks = fits ? 1 : 0;  // an OS thread runs one block at a time
    return hipSuccess;
}

hipError_t limit_dynamic_shared(hipFuncAttribute attribute, int value) {
    const bool too_much = attribute == hipFuncAttributeMaxDynamicSharedMemorySize &&
                          (value < 0 || static_cast<std::size_t>(value) > max_shared_bytes);
    if (too_much) last_error() = hipErrorInvalidValue;
    return too_much ? hipErrorInvalidValue : hipSuccess;
}
}  // namespace hip_cpu

hipError_t hipGetLastError() {
    const hipError_t error = hip_cpu::last_error();
    hip_cpu::last_error() = hipSuccess;
    return error;
}

hipError_t hipPeekAtLastError() { return hip_cpu::last_error(); }

hipError_t hipMalloc(void** pointer, std::size_t bytes) {
    if (!pointer) return hipErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return hipSuccess;
    *pointer = hip_cpu::DeviceMemory::allocate(bytes);
    return *pointer ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipFree(void* pointer) {
    return hip_cpu::DeviceMemory::free(pointer) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemset(void* to, int value, std::size_t bytes) {
    if (hip_cpu::runs_nothing()) return hipSuccess;
    const hip_cpu::DeviceMemory::InReach reachable;
    std::memset(to, value, bytes);
    return hipSuccess;
}

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
    if (hip_cpu::DeviceMemory::refuses_copy(to, from, bytes, kind == hipMemcpyDeviceToHost)) return hipErrorNotSupported;
    if (hip_cpu::runs_nothing()) return hipSuccess;
    const hip_cpu::DeviceMemory::InReach reachable;
    std::memmove(to, from, bytes);
    return hipSuccess;
}

hipError_t hipGetDevice(int* device) {
    *device = 0;
    return hipSuccess;
}

hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidDevice; }

hipError_t hipGetDeviceCount(int* count) {
    *count = 1;
    return hipSuccess;
}

#define HIP_CPU_ERRORS(X)                                                                                        \
    X(hipSuccess, "no error")                                                                                    \
    X(hipErrorInvalidValue, "invalid argument")                                                                  \
    X(hipErrorOutOfMemory, "out of memory")                                                                      \
    X(hipErrorNotInitialized, "initialization error")                                                            \
    X(hipErrorInvalidConfiguration, "invalid configuration argument")                                            \
    X(hipErrorInvalidSymbol, "invalid device symbol")                                                            \
    X(hipErrorInvalidDevicePointer, "invalid device pointer")                                                    \
    X(hipErrorInvalidDeviceFunction, "invalid device function")                                                  \
    X(hipErrorNoDevice, "no HIP-capable device is detected")                                                     \
    X(hipErrorInvalidDevice, "invalid device ordinal")                                                           \
    X(hipErrorInvalidHandle, "invalid resource handle")                                                          \
    X(hipErrorIllegalState, "the operation cannot be performed in the present state")                            \
    X(hipErrorNotFound, "named symbol not found")                                                                \
    X(hipErrorNotReady, "device not ready")                                                                      \
    X(hipErrorIllegalAddress, "an illegal memory access was encountered")                                        \
    X(hipErrorLaunchOutOfResources, "out of resources")                                                          \
    X(hipErrorLaunchFailure, "unspecified launch failure")                                                       \
    X(hipErrorNotSupported, "operation not supported")                                                           \
    X(hipErrorUnknown, "unknown error")

const char* hipGetErrorName(hipError_t error) {
    switch (error) {
#define X(name, text) \
    case name: return #name;
        HIP_CPU_ERRORS(X)
#undef X
    }
    return "hipErrorUnknown";
}

const char* hip_cpu_worker_error_name(int code) { return hipGetErrorName(static_cast<hipError_t>(code)); }

const char* hipGetErrorString(hipError_t error) {
    switch (error) {
#define X(name, text) \
    case name: return text;
        HIP_CPU_ERRORS(X)
#undef X
    }
    return "unknown error";
}
