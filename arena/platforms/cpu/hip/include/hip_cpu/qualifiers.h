// What the language extension's keywords mean to a C++ compiler on a CPU. `hip_source.py` rewrites the rest:
// launches, `extern __shared__`, `__noinline__`, and the bookkeeping of every `__shared__` variable.
#pragma once

#define __HIPCC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_CPU__ 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

// A block runs on one OS thread from beginning to end, so block-local is thread-local.
#define __shared__ static thread_local

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(symbol) symbol
#define HIP_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::hip_cpu::dynamic_shared());

#ifndef HIP_CPU_WAVE_SIZE
#define HIP_CPU_WAVE_SIZE 32
#endif
constexpr int warpSize = HIP_CPU_WAVE_SIZE;

// What a GPU compiler would take and a C++ compiler cannot: the rewriter puts this in front of inline assembly.
#define HIP_CPU_NO_INLINE_ASSEMBLY \
    _Pragma("GCC error \"inline assembly for a GPU: the HIP-on-CPU header does not provide it\"")
