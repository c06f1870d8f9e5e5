// Launches: their errors, and every block of the grid in turn.
#include "hip_cpu/api.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "memory.h"
#include "scheduler.h"
#include "worker.h"

namespace hip_cpu {

hipError_t& last_error() {
    static __thread hipError_t error;
    return error;
}

namespace {

bool exceeds(const dim3& grid) { return grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535; }

hipError_t check(const Config& config) {
    const dim3 &g = config.grid, &b = config.block;
    const std::uint64_t threads = static_cast<std::uint64_t>(b.x) * b.y * b.z;
    if (b.x > max_block_threads || b.y > max_block_threads || b.z > max_block_threads) {
        return hipErrorInvalidConfiguration;
    }
    if (threads == 0 || threads > max_block_threads) return hipErrorInvalidConfiguration;
    if (g.x == 0 || g.y == 0 || g.z == 0) return hipErrorInvalidConfiguration;
    if (exceeds(g)) return hipErrorInvalidConfiguration;
    return config.shared_bytes > max_shared_bytes ? hipErrorInvalidValue : hipSuccess;
}

// What a worker gives a call as its stream: an address that nothing else has, and nobody reads.
char the_stream;
bool in_call = false;

// Of the current call.
Order order;

// Work of the call that was not on its stream: the first piece, and how many more.
struct OffStream {
    unsigned count = 0, line = 0;
    char what[64], file[64];
    std::string text;
} off_stream;

// The first grid of the call that no GPU launches, in words.
std::string grid_limit;

// The name of a file without its folders.
const char* bare(const char* file) {
    const char* const folder = std::strrchr(file, '/');
    return folder ? folder + 1 : file;
}

}  // namespace

bool runs_nothing() noexcept { return order.runs_nothing(); }

void note_stream(hipStream_t stream, const char* what, const char* file, unsigned line) noexcept {
    if (!in_call || reinterpret_cast<char*>(stream) == &the_stream) return;
    if (off_stream.count++ != 0) return;
    std::snprintf(off_stream.what, sizeof off_stream.what, "%s", what);
    std::snprintf(off_stream.file, sizeof off_stream.file, "%s", bare(file));
    off_stream.line = line;
}

void launch_threads(const Config& config, void (*thread)(void*), void* argument, unsigned wave_size) noexcept {
    if (context.block_serial != 0) {
        std::fputs("HIP on CPU: a kernel launches a kernel, which HIP does not provide\n", stderr);
        std::abort();
    }
    note_stream(config.stream, "launches a kernel", config.file, config.line);
    if (exceeds(config.grid) && grid_limit.empty()) {
        grid_limit = "launches a grid of " + std::to_string(config.grid.x) + " x " + std::to_string(config.grid.y) +
                     " x " + std::to_string(config.grid.z) + " blocks at " + bare(config.file) + ":" +
                     std::to_string(config.line) + "; at most 2147483647 x 65535 x 65535 are launched";
    }
    const hipError_t refused = check(config);
    if (refused != hipSuccess) {
        last_error() = refused;
        return;
    }
    if (order.runs_nothing()) return;
    const DeviceMemory::InReach reachable;
    Launch launch{thread, argument, config.grid, config.block, config.shared_bytes, wave_size, order};
    const std::uint64_t blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
    Scheduler& scheduler = Scheduler::of_this_thread();
    for (std::uint64_t turn = 0; turn < blocks && !launch.shared_exceeded; ++turn) {
        scheduler.run(launch, order.at(turn, blocks));
    }
    if (launch.shared_exceeded) last_error() = hipErrorInvalidValue;
}

}  // namespace hip_cpu

void hip_cpu_worker_order(std::uint64_t seed) {
    hip_cpu::order = hip_cpu::Order(seed);
    hip_cpu::grid_limit.clear();
}

const char* hip_cpu_worker_grid_limit() { return hip_cpu::grid_limit.empty() ? nullptr : hip_cpu::grid_limit.c_str(); }

void* hip_cpu_worker_stream() { return &hip_cpu::the_stream; }

void hip_cpu_worker_begin_streams() {
    hip_cpu::off_stream = {};
    hip_cpu::in_call = true;
}

const char* hip_cpu_worker_end_streams() {
    hip_cpu::OffStream& found = hip_cpu::off_stream;
    hip_cpu::in_call = false;
    if (found.count == 0) return nullptr;
    found.text = std::string(found.what) + " at " + found.file + ":" + std::to_string(found.line);
    if (found.count > 1) found.text += " (the first of " + std::to_string(found.count) + ")";
    return found.text.c_str();
}
