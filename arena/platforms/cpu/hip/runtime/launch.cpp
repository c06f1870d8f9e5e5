// Launches: their errors, and every block of the grid in turn.
#include "hip_cpu/api.h"
#include "memory.h"
#include "scheduler.h"

namespace hip_cpu {

hipError_t& last_error() {
    static __thread hipError_t error;
    return error;
}

namespace {

hipError_t check(const Config& config) {
    const dim3 &g = config.grid, &b = config.block;
    const std::uint64_t threads = static_cast<std::uint64_t>(b.x) * b.y * b.z;
    if (b.x > max_block_threads || b.y > max_block_threads || b.z > max_block_threads) {
        return hipErrorInvalidConfiguration;
    }
    if (threads == 0 || threads > max_block_threads) return hipErrorInvalidConfiguration;
    if (g.x == 0 || g.y == 0 || g.z == 0) return hipErrorInvalidConfiguration;
    if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) return hipErrorInvalidConfiguration;
    return config.shared_bytes > max_shared_bytes ? hipErrorInvalidValue : hipSuccess;
}

}  // namespace

void launch_threads(const Config& config, void (*thread)(void*), void* argument, unsigned wave_size) noexcept {
    if (context.block_serial != 0) {
        std::fputs("HIP on CPU: a kernel launches a kernel, which HIP does not provide\n", stderr);
        std::abort();
    }
    const hipError_t refused = check(config);
    if (refused != hipSuccess) {
        last_error() = refused;
        return;
    }
    const DeviceMemory::InReach reachable;
    Launch launch{thread, argument, config.grid, config.block, config.shared_bytes, wave_size};
    const std::uint64_t blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
    Scheduler& scheduler = Scheduler::of_this_thread();
    for (std::uint64_t block = 0; block < blocks && !launch.shared_exceeded; ++block) scheduler.run(launch, block);
    if (launch.shared_exceeded) last_error() = hipErrorInvalidValue;
}

}  // namespace hip_cpu
