// The part of the HIP runtime API that a launch function uses. Memory is host memory, every call is synchronous.
#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>

#include "hip_cpu/thread.h"

typedef enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorMemoryAllocation = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidSymbol = 13,
    hipErrorInvalidDevicePointer = 17,
    hipErrorInvalidDeviceFunction = 98,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchOutOfResources = 701,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorUnknown = 999,
} hipError_t;

typedef enum hipMemcpyKind {
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault,
} hipMemcpyKind;

typedef enum hipFuncAttribute {
    hipFuncAttributeMaxDynamicSharedMemorySize = 8,
    hipFuncAttributePreferredSharedMemoryCarveout = 9,
} hipFuncAttribute;

typedef enum hipFuncCache_t {
    hipFuncCachePreferNone,
    hipFuncCachePreferShared,
    hipFuncCachePreferL1,
    hipFuncCachePreferEqual,
} hipFuncCache_t;

typedef enum hipDeviceAttribute_t {
    hipDeviceAttributeMultiprocessorCount,
    hipDeviceAttributeWarpSize,
    hipDeviceAttributeMaxThreadsPerBlock,
    hipDeviceAttributeMaxBlockDimX,
    hipDeviceAttributeMaxBlockDimY,
    hipDeviceAttributeMaxBlockDimZ,
    hipDeviceAttributeMaxGridDimX,
    hipDeviceAttributeMaxGridDimY,
    hipDeviceAttributeMaxGridDimZ,
    hipDeviceAttributeMaxSharedMemoryPerBlock,
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
    hipDeviceAttributeMaxThreadsPerMultiProcessor,
    hipDeviceAttributeMaxRegistersPerBlock,
    hipDeviceAttributeClockRate,
    hipDeviceAttributeWallClockRate,
    hipDeviceAttributeL2CacheSize,
    hipDeviceAttributeComputeCapabilityMajor,
    hipDeviceAttributeComputeCapabilityMinor,
    hipDeviceAttributeCooperativeLaunch,
} hipDeviceAttribute_t;

struct hipDeviceProp_t {
    char name[256];
    char gcnArchName[256];
    std::size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerMultiprocessor, maxSharedMemoryPerMultiProcessor;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int clockRate, major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor;
};

struct ihipEvent_t;
typedef ihipEvent_t* hipEvent_t;
#define hipStreamDefault 0u
#define hipStreamNonBlocking 1u
#define hipEventDefault 0u
#define hipEventDisableTiming 2u

#pragma GCC visibility push(default)
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
const char* hipGetErrorString(hipError_t error);
const char* hipGetErrorName(hipError_t error);

hipError_t hipMalloc(void** pointer, std::size_t bytes);
hipError_t hipFree(void* pointer);
hipError_t hipMemset(void* to, int value, std::size_t bytes);
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind);

hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipGetDeviceCount(int* count);

namespace hip_cpu {
hipError_t device_properties(hipDeviceProp_t* properties, int device, int wave_size);
hipError_t device_attribute(int* value, hipDeviceAttribute_t attribute, int device, int wave_size);
hipError_t resident_blocks(int* blocks, int block_size, std::size_t shared_bytes);
hipError_t limit_dynamic_shared(hipFuncAttribute attribute, int value);
}  // namespace hip_cpu
#pragma GCC visibility pop

inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
    return hip_cpu::device_properties(properties, device, warpSize);
}
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
    return hip_cpu::device_attribute(value, attribute, device, warpSize);
}
template <class F>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int block_size, std::size_t shared_bytes) {
    return hip_cpu::resident_blocks(blocks, block_size, shared_bytes);
}
template <class F>
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, F, std::size_t = 0, int limit = 0) {
    *block = limit > 0 && limit < 256 ? limit : 256;
    return hip_cpu::device_attribute(grid, hipDeviceAttributeMultiprocessorCount, 0, warpSize);
}
template <class F> hipError_t hipFuncSetAttribute(F, hipFuncAttribute attribute, int value) {
    return hip_cpu::limit_dynamic_shared(attribute, value);
}
template <class F> hipError_t hipFuncSetCacheConfig(F, hipFuncCache_t) { return hipSuccess; }

template <class T> hipError_t hipMalloc(T** pointer, std::size_t bytes) {
    return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class T> hipError_t hipMallocAsync(T** pointer, std::size_t bytes, hipStream_t) {
    return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}
inline hipError_t hipFreeAsync(void* pointer, hipStream_t) { return hipFree(pointer); }

inline hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream = nullptr,
                                 unsigned line = __builtin_LINE(), const char* file = __builtin_FILE()) {
    hip_cpu::note_stream(stream, "fills memory", file, line);
    return hipMemset(to, value, bytes);
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 hipStream_t stream = nullptr, unsigned line = __builtin_LINE(),
                                 const char* file = __builtin_FILE()) {
    hip_cpu::note_stream(stream, "copies memory", file, line);
    return hipMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, hipMemcpyKind kind, hipStream_t = nullptr) {
    for (std::size_t row = 0; row < height; ++row) {
        hipMemcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width,
                  kind);
    }
    return hipSuccess;
}
template <class T>
hipError_t hipMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice) {
    return hipMemcpy(reinterpret_cast<char*>(&symbol) + offset, from, bytes, kind);
}
template <class T>
hipError_t hipMemcpyToSymbolAsync(T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                  hipMemcpyKind kind, hipStream_t = nullptr) {
    return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
hipError_t hipMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost) {
    return hipMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes, kind);
}
template <class T> hipError_t hipGetSymbolAddress(void** pointer, const T& symbol) {
    *pointer = const_cast<void*>(static_cast<const void*>(&symbol));
    return hipSuccess;
}

inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamQuery(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamCreate(hipStream_t* stream) { return *stream = nullptr, hipSuccess; }
inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) { return hipStreamCreate(stream); }
inline hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned = 0) { return hipSuccess; }
inline hipError_t hipEventCreate(hipEvent_t* event) { return *event = nullptr, hipSuccess; }
inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) { return hipEventCreate(event); }
inline hipError_t hipEventRecord(hipEvent_t, hipStream_t = nullptr) { return hipSuccess; }
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }

template <class... P, std::size_t... I>
void hip_cpu_call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
}
// Only for a kernel passed as what it is: behind a `const void*` its parameters are unknown to a C++ compiler.
// `hip/source.py` removes such a cast that is written in the call.
template <class... P>
hipError_t hipLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                           hipStream_t stream, unsigned line = __builtin_LINE(), const char* file = __builtin_FILE()) {
    hip_cpu::launch(hip_cpu::Config(grid, block, shared_bytes, stream, line, file),
                    [&] { hip_cpu_call(kernel, arguments, std::index_sequence_for<P...>()); });
    return hipGetLastError();
}
