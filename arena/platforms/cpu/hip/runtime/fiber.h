// One stack that GPU threads run on, one after another; switched by Boost.Context's two assembly routines.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "hip_cpu/vector_types.h"

extern "C" {
struct hip_cpu_transfer {
    void* from;
    void* data;
};
hip_cpu_transfer jump_fcontext(void* to, void* data);
void* make_fcontext(void* top, std::size_t size, void (*entry)(hip_cpu_transfer));
}

namespace hip_cpu {

struct Fiber {
    void* context = nullptr;
    char* memory = nullptr;
    uint3 thread_index{};
    unsigned linear = 0;

    static constexpr std::size_t stack_bytes = 256 * 1024;
    static constexpr std::size_t guard_bytes = 64 * 1024;

    Fiber() = default;
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;
    ~Fiber() {
        if (memory) munmap(memory, stack_bytes + guard_bytes);
    }

    // Begin (again) at `entry`. `number` staggers the stack tops, so that the hot frames of the many fibers of a
    // block do not all fall into the same few sets of the first-level cache.
    void prepare(void (*entry)(hip_cpu_transfer), unsigned number) {
        if (!memory) allocate();
        const std::size_t stagger = (number % 16) * 256;
        char* top = memory + guard_bytes + stack_bytes - stagger;
        context = make_fcontext(top, stack_bytes - stagger, entry);
    }

  private:
    void allocate() {
        void* got = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) {
            std::fputs("HIP on CPU: no memory for the stack of a GPU thread\n", stderr);
            std::abort();
        }
        memory = static_cast<char*>(got);
        mprotect(memory, guard_bytes, PROT_NONE);  // a stack that overflows faults instead of corrupting another
    }
};

}  // namespace hip_cpu
