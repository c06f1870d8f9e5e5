// Where a GPU thread is, what a launch is, and the shared memory of its block: the seam to the runtime library.
#pragma once

#include "hip_cpu/qualifiers.h"
#include "hip_cpu/vector_types.h"

struct ihipStream_t;
typedef ihipStream_t* hipStream_t;

// What a candidate's library needs of the runtime, which the worker brings; everything else is its own.
#define HIP_CPU_SEAM __attribute__((visibility("default")))

#pragma GCC visibility push(hidden)
namespace hip_cpu {

// The GPU thread that runs now on this OS thread. `block_serial` is 0 outside a kernel and differs for every block.
struct Context {
    uint3 thread_index, block_index, block_size, grid_size;
    unsigned linear;
    unsigned long block_serial;
    void* dynamic_shared;
};
HIP_CPU_SEAM extern __thread Context context;

struct Config {
    dim3 grid, block;
    std::size_t shared_bytes;
    hipStream_t stream;
    unsigned line;
    const char* file;
    // Line and file are those of the launch.
    Config(dim3 g, dim3 b, std::size_t bytes = 0, hipStream_t s = nullptr, unsigned line_ = __builtin_LINE(),
           const char* file_ = __builtin_FILE())
        : grid(g), block(b), shared_bytes(bytes), stream(s), line(line_), file(file_) {}
};

// Work of a call has to be on the stream that the call is given: notes what is not.
HIP_CPU_SEAM void note_stream(hipStream_t stream, const char* what, const char* file, unsigned line) noexcept;

// Runs `thread(argument)` once per GPU thread and returns when all are done; errors go to hipGetLastError.
HIP_CPU_SEAM void launch_threads(const Config& config, void (*thread)(void*), void* argument, unsigned wave_size) noexcept;

template <class Body> void launch(const Config& config, Body&& body) {
    using B = std::remove_reference_t<Body>;
    launch_threads(config, [](void* p) { (*static_cast<B*>(p))(); }, &body, HIP_CPU_WAVE_SIZE);
}

// A block's first arrival at a `__shared__` variable: counts it against the limit and fills it with poison.
HIP_CPU_SEAM void claim_shared(void* variable, std::size_t bytes) noexcept;

// Memory for a `__shared__` variable of this OS thread: it ends where nothing can be touched, and follows poison.
HIP_CPU_SEAM void* place_shared(std::size_t bytes, std::size_t align) noexcept;

// A name outside of functions stands for dynamic shared memory: from now on that is an array without a guard page.
HIP_CPU_SEAM bool use_dynamic_array() noexcept;

inline bool enter_shared(unsigned long& stamp, void* variable, std::size_t bytes) {
    if (__builtin_expect(stamp != context.block_serial, 0)) {
        stamp = context.block_serial;
        claim_shared(variable, bytes);
    }
    return true;
}

inline void* dynamic_shared() { return context.dynamic_shared; }

// The block-wide barrier. Returns how many threads came with `predicate` non-zero, and through `arrived` how many came.
HIP_CPU_SEAM unsigned block_barrier(unsigned line, bool predicate, unsigned* arrived = nullptr) noexcept;

// Lets other threads of the block run; something to do while polling.
HIP_CPU_SEAM void yield() noexcept;

}  // namespace hip_cpu
#pragma GCC visibility pop

#define threadIdx (::hip_cpu::context.thread_index)
#define blockIdx (::hip_cpu::context.block_index)
#define blockDim (::hip_cpu::context.block_size)
#define gridDim (::hip_cpu::context.grid_size)

// The line of the call tells barriers apart, so that threads that wait at two different ones are noticed.
inline void __syncthreads(unsigned line = __builtin_LINE()) { hip_cpu::block_barrier(line, false); }
inline int __syncthreads_count(int predicate, unsigned line = __builtin_LINE()) {
    return static_cast<int>(hip_cpu::block_barrier(line, predicate != 0));
}
inline int __syncthreads_or(int predicate, unsigned line = __builtin_LINE()) {
    return hip_cpu::block_barrier(line, predicate != 0) != 0;
}
inline int __syncthreads_and(int predicate, unsigned line = __builtin_LINE()) {
    unsigned arrived = 0;
    const unsigned ones = hip_cpu::block_barrier(line, predicate != 0, &arrived);
    return ones == arrived;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { hip_cpu::yield(); }

#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
    ::hip_cpu::launch(::hip_cpu::Config(grid, block, shared, stream), [&]() { kernel(__VA_ARGS__); })
