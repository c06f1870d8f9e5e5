// Shared memory that ends at a page without any right of access; what lies before it is poison, and is looked at.
#pragma once

#include <cstddef>

namespace hip_cpu {

class Guarded {
  public:
    static constexpr std::size_t before = 256;
    static constexpr unsigned char poison = 0xff;  // NaN, as whatever float it is read

    // `bytes` of memory whose end, but for `align`, is a guard page; at least `before` bytes of poison precede it.
    static char* allocate(std::size_t bytes, std::size_t align);
    // Whether this was given by `allocate`, on any OS thread.
    static bool holds(const void* address);
    // Whether a fault at this address is an access past the end of shared memory.
    static bool is_guard(const void* address);
    static bool intact(const void* first);
};

}  // namespace hip_cpu
