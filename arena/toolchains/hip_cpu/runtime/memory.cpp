// What happens to device memory between kernels: pages without any right of access, and a word on who touched them.
#include "memory.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace hip_cpu {
namespace {

std::recursive_mutex in_use;
char* first_page = nullptr;
std::size_t num_bytes = 0;
int users = 0;

// The access is made again after this, and ends the process as it would have done.
void explain(int, siginfo_t* signal_info, void*) {
    static const char words[] =
        "HIP on CPU: host code touched device memory; only kernels, hipMemcpy and hipMemset can. A GPU has no such "
        "memory on the host either.\n";
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(signal_info->si_addr);
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(first_page);
    if (at >= first && at < first + num_bytes && write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(1);
    std::signal(SIGSEGV, SIG_DFL);
}

void have_it_explained() {
    struct sigaction action;
    std::memset(&action, 0, sizeof action);
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

DeviceMemory::InReach::InReach() : alone_(in_use) {
    if (++users == 1) allow(true);
}

DeviceMemory::InReach::~InReach() {
    if (--users == 0) allow(false);
}

void DeviceMemory::allow(bool reachable) {
    if (num_bytes != 0) mprotect(first_page, num_bytes, reachable ? PROT_READ | PROT_WRITE : PROT_NONE);
}

int DeviceMemory::keep_out(void* first, std::size_t bytes) {
    std::lock_guard<std::recursive_mutex> alone(in_use);
    allow(true);
    first_page = static_cast<char*>(first);
    num_bytes = bytes;
    if (bytes == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        return 0;
    }
    have_it_explained();
    return mprotect(first_page, num_bytes, PROT_NONE) == 0 ? 0 : errno;
}

}  // namespace hip_cpu

extern "C" __attribute__((visibility("default"))) int hip_cpu_keep_out(void* first, std::size_t bytes) {
    return hip_cpu::DeviceMemory::keep_out(first, bytes);
}
