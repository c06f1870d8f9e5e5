// Device memory between kernels: pages without any right of access, and a word on who touched them.
#include "memory.h"

#include "guarded.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "worker.h"

namespace hip_cpu {
namespace {

constexpr std::size_t most_to_host = 4096;

struct Region {
    char* first;
    std::size_t bytes;
    bool owned;
};

std::recursive_mutex in_use;
std::vector<Region> regions;
int users = 0;
std::size_t to_host = 0, refused = 0;

bool holds(const void* address) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address);
    for (const Region& region : regions) {
        if (at - reinterpret_cast<std::uintptr_t>(region.first) < region.bytes) return true;
    }
    return false;
}

// How many of these bytes lie in device memory, wherever the first of them is.
std::size_t bytes_held(const void* address, std::size_t bytes) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + std::min<std::uintptr_t>(bytes, UINTPTR_MAX - begin);
    std::size_t held = 0;
    for (const Region& region : regions) {
        const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(region.first);
        const std::uintptr_t from = std::max(begin, first), to = std::min(end, first + region.bytes);
        if (from < to) held += to - from;
    }
    return held;
}

// The access is made again after this, and ends the process as it would have done.
void explain(int number, siginfo_t* signal_info, void*) {
    static const char words[] =
        "HIP on CPU: host code touched device memory; only kernels, hipMemcpy and hipMemset can. A GPU has no such "
        "memory on the host either.\n";
    static const char past[] =
        "HIP on CPU: a kernel reached past the end of a __shared__ variable. On a GPU this reads or changes another "
        "one.\n";
    static const char misaligned[] =
        "HIP on CPU: a vector access, such as one of float4, at an address that is no multiple of its size, a wild "
        "pointer, or a trap of the kernel's own. A GPU faults on it too. Check offsets and row strides, or access "
        "single elements.\n";
    // The compiler puts a trap before accesses that may be misaligned. Where it expects none, x86 reports those of 16 bytes
    // as a general protection fault, without an address.
    const bool protection = signal_info->si_code == SI_KERNEL && signal_info->si_addr == nullptr;
    if ((protection || number == SIGILL) && write(STDERR_FILENO, misaligned, sizeof misaligned - 1) < 0) _exit(1);
    const void* const at = number == SIGSEGV ? signal_info->si_addr : nullptr;
    if (at && Guarded::is_guard(at) && write(STDERR_FILENO, past, sizeof past - 1) < 0) _exit(1);
    if (at && holds(at) && write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(1);
    std::signal(number, SIG_DFL);
}

void have_it_explained() {
    struct sigaction action;
    std::memset(&action, 0, sizeof action);
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGILL, &action, nullptr);
}

std::size_t whole_pages(std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

DeviceMemory::InReach::InReach() : alone_(in_use) {
    if (++users == 1) allow(true);
}

DeviceMemory::InReach::~InReach() {
    if (--users == 0) allow(false);
}

void DeviceMemory::allow(bool reachable) {
    const int rights = reachable ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (const Region& region : regions) {
        if (mprotect(region.first, region.bytes, rights) != 0) {
            static const char words[] = "HIP on CPU: device memory cannot be protected\n";
            if (write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(1);
            std::abort();
        }
    }
}

void* DeviceMemory::allocate(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(-1) / 2) return nullptr;
    const std::size_t whole = whole_pages(bytes);
    void* const first = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (first == MAP_FAILED) return nullptr;
    std::lock_guard<std::recursive_mutex> alone(in_use);
    regions.push_back({static_cast<char*>(first), whole, true});
    if (users != 0) allow(true);
    have_it_explained();
    return first;
}

bool DeviceMemory::free(void* first) {
    if (!first) return true;
    std::lock_guard<std::recursive_mutex> alone(in_use);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].first != first || !regions[i].owned) continue;
        munmap(first, regions[i].bytes);
        regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
    }
    return false;
}

bool DeviceMemory::add(void* first, std::size_t bytes) {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    regions.push_back({static_cast<char*>(first), whole_pages(bytes), false});
    have_it_explained();
    return mprotect(first, whole_pages(bytes), PROT_NONE) == 0;
}

void DeviceMemory::remove(void* first) {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].first != first || regions[i].owned) continue;
        mprotect(first, regions[i].bytes, PROT_READ | PROT_WRITE);
        regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(i));
        return;
    }
}

bool DeviceMemory::refuses_copy(const void* to, const void* from, std::size_t bytes, bool said_to_be_to_host) {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    if (bytes_held(to, bytes) == bytes || !(bytes_held(from, bytes) != 0 || said_to_be_to_host)) return false;
    to_host += bytes;
    if (to_host <= most_to_host) return false;
    refused = to_host;
    return true;
}

void DeviceMemory::begin_call() {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    to_host = refused = 0;
}

std::size_t DeviceMemory::refused_bytes() {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    return refused;
}

}  // namespace hip_cpu

bool hip_cpu_worker_add(void* first, std::size_t bytes) { return hip_cpu::DeviceMemory::add(first, bytes); }

void hip_cpu_worker_remove(void* first) { hip_cpu::DeviceMemory::remove(first); }

void hip_cpu_worker_touch(void (*work)(void*), void* argument) {
    const hip_cpu::DeviceMemory::InReach reachable;
    work(argument);
}

void hip_cpu_worker_begin_call() { hip_cpu::DeviceMemory::begin_call(); }

std::size_t hip_cpu_worker_end_call() { return hip_cpu::DeviceMemory::refused_bytes(); }
