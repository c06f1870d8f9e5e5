// Shared memory between poison and a guard page.
#include "guarded.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace hip_cpu {
namespace {

struct Place {
    std::uintptr_t first, guard, end;
};

std::mutex places_in_use;
std::vector<Place> places;

}  // namespace

char* Guarded::allocate(std::size_t bytes, std::size_t align) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t asked = (bytes + align - 1) / align * align;
    const std::size_t usable = (before + asked + page - 1) / page * page;
    void* const got = mmap(nullptr, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const memory = static_cast<char*>(got);
    if (got == MAP_FAILED || mprotect(memory + usable, page, PROT_NONE) != 0) {
        std::fputs("HIP on CPU: no memory for shared memory\n", stderr);
        std::abort();
    }
    std::memset(memory, poison, usable);
    char* const first = memory + usable - asked;
    const std::uintptr_t guard = reinterpret_cast<std::uintptr_t>(memory) + usable;
    std::lock_guard<std::mutex> alone(places_in_use);
    places.push_back({reinterpret_cast<std::uintptr_t>(first), guard, guard + page});
    return first;
}

bool Guarded::holds(const void* address) {
    std::lock_guard<std::mutex> alone(places_in_use);
    for (const Place& place : places) {
        if (place.first == reinterpret_cast<std::uintptr_t>(address)) return true;
    }
    return false;
}

bool Guarded::is_guard(const void* address) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address);
    for (const Place& place : places) {
        if (at >= place.guard && at < place.end) return true;
    }
    return false;
}

bool Guarded::intact(const void* first) {
    const unsigned char* const at = static_cast<const unsigned char*>(first) - before;
    for (std::size_t i = 0; i < before; ++i) {
        if (at[i] != poison) return false;
    }
    return true;
}

}  // namespace hip_cpu
