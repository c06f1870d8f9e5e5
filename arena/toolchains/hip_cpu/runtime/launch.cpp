// Launches: their errors, and how blocks are spread over OS threads.
//
// Block 0 runs first and alone, on the thread that launches. It shows whether shared memory suffices and how long a
// block takes; only when the rest is worth it are helper threads woken.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "hip_cpu/api.h"
#include "scheduler.h"

namespace hip_cpu {

int processors() {
    static const int count = [] {
        if (const char* wanted = std::getenv("HIP_CPU_THREADS")) {
            const int n = std::atoi(wanted);
            if (n > 0) return n < 256 ? n : 256;
        }
        cpu_set_t set;
        const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        return n < 16 ? n : 16;
    }();
    return count;
}

hipError_t& last_error() {
    static __thread hipError_t error;
    return error;
}

namespace {

constexpr double worth_waking_s = 50e-6;

double now_s() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

void run_blocks(Launch& launch, Scheduler& scheduler, std::uint64_t chunk) {
    while (!launch.shared_exceeded) {
        std::uint64_t first = launch.next_block.fetch_add(chunk);
        if (first >= launch.blocks) return;
        const std::uint64_t end = first + chunk < launch.blocks ? first + chunk : launch.blocks;
        for (; first < end && !launch.shared_exceeded; ++first) scheduler.run(launch, first);
    }
}

// Helper threads of one process. Never destroyed: they wait here until the process ends.
class Pool {
  public:
    static Pool& get() {
        static std::mutex guard;
        static Pool* pool = nullptr;
        std::lock_guard<std::mutex> lock(guard);
        if (!pool || pool->process_ != getpid()) pool = new Pool;  // threads do not survive a fork
        return *pool;
    }

    void run(Launch& launch) {
        std::lock_guard<std::mutex> one_at_a_time(launching_);
        const std::uint64_t shares = static_cast<std::uint64_t>(helpers_ + 1) * 8;
        chunk_ = launch.blocks / shares > 0 ? launch.blocks / shares : 1;
        if (chunk_ > 64) chunk_ = 64;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            launch_ = &launch;
            busy_ = helpers_;
            ++generation_;
        }
        wake_.notify_all();
        run_blocks(launch, Scheduler::of_this_thread(), chunk_);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
    }

  private:
    Pool() : process_(getpid()) {
        for (int i = 1; i < processors(); ++i) {
            pthread_t helper;
            if (pthread_create(&helper, nullptr, enter, this) != 0) break;  // fewer threads are only slower
            pthread_detach(helper);
            ++helpers_;
        }
    }

    static void* enter(void* pool) {
        static_cast<Pool*>(pool)->help();
        return nullptr;
    }

    [[noreturn]] void help() {
        unsigned long seen = 0;
        for (;;) {
            Launch* launch;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return generation_ != seen; });
                seen = generation_;
                launch = launch_;
            }
            run_blocks(*launch, Scheduler::of_this_thread(), chunk_);
            std::lock_guard<std::mutex> lock(mutex_);
            if (--busy_ == 0) done_.notify_one();
        }
    }

    const pid_t process_;
    std::mutex launching_, mutex_;
    std::condition_variable wake_, done_;
    Launch* launch_ = nullptr;
    std::uint64_t chunk_ = 1;
    unsigned long generation_ = 0;
    int helpers_ = 0, busy_ = 0;
};

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
    Launch launch{thread, argument, config.grid, config.block, config.shared_bytes, wave_size, 0};
    launch.blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
    Scheduler& scheduler = Scheduler::of_this_thread();
    const double started = now_s();
    scheduler.run(launch, launch.next_block++);
    const double rest_s = (now_s() - started) * static_cast<double>(launch.blocks - 1);
    if (rest_s > worth_waking_s && processors() > 1) {
        Pool::get().run(launch);
    } else {
        run_blocks(launch, scheduler, 1);
    }
    if (launch.shared_exceeded) last_error() = hipErrorInvalidValue;
}

}  // namespace hip_cpu
