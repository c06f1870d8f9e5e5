// What the worker, and nobody else, asks of the runtime: no candidate's object file may need these names.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {
// Takes whole pages that the caller has mapped out of the host's reach; false where they cannot be protected.
bool hip_cpu_worker_add(void* first, std::size_t bytes);
void hip_cpu_worker_remove(void* first);

// Runs `work(argument)` with device memory in reach.
void hip_cpu_worker_touch(void (*work)(void*), void* argument);

// Around each call of a candidate's: how many bytes it copied to the host where that was too much, else 0.
void hip_cpu_worker_begin_call();
std::size_t hip_cpu_worker_end_call();

// In which order the blocks and threads of launches begin from here on: see `Order`.
void hip_cpu_worker_order(std::uint64_t seed);

// Of the launches since then, the first whose grid exceeds the limits of GPUs, in words; null where there was none.
const char* hip_cpu_worker_grid_limit();

// The stream that a worker gives to calls. Between these two, other work is noted: `launches a kernel at kernel.hip:28`,
// or null where all was on that stream.
void* hip_cpu_worker_stream();
void hip_cpu_worker_begin_streams();
const char* hip_cpu_worker_end_streams();

// What `hipGetErrorName` says of a code.
const char* hip_cpu_worker_error_name(int code);
}
#pragma GCC visibility pop
