// Runs the threads of one block, cooperatively, on one OS thread.
//
// Threads start one after the other, in the order of the launch, on one fiber; a fiber belongs to a thread only from its first wait to its end, so a
// kernel without barriers never switches. A thread waits at the block's barrier or at an operation of its wave;
// whoever completes the meeting makes the others ready and goes on. When nobody can go on, `resolve_stall`
// decides as a GPU does: diverged lanes of a wave go on in groups; anything else is an error of the kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fiber.h"
#include "guarded.h"
#include "hip_cpu/wave.h"
#include "order.h"

// Dynamic shared memory. `extern __shared__` at namespace scope is rewritten to a declaration of this symbol.
extern "C" HIP_CPU_SEAM __thread char hip_cpu_dynamic_shared[];

namespace hip_cpu {

constexpr unsigned max_block_threads = 1024;
constexpr std::size_t max_shared_bytes = 64 * 1024;

struct Launch {
    void (*thread)(void*);
    void* argument;
    uint3 grid, block;
    std::size_t shared_bytes;
    unsigned wave_size;
    const Order& order;
    bool shared_exceeded = false;
};

struct Barrier {
    unsigned arrived = 0, ones = 0, line = 0;
    unsigned result_ones = 0, result_arrived = 0;
    bool mixed = false;
};

struct Wave {
    LaneMask live = 0, waiting = 0;
    std::uint64_t key = 0;  // of the first lane that waits
    LaneMask mask = 0;
    bool mixed = false;  // whether the waiting lanes are at different operations
    struct Lane {
        Fiber* fiber;
        std::uint64_t key;  // line and kind of the operation
        LaneMask mask, value, result;
        LaneMask* collected;
        unsigned source;
    } lanes[64];
};

class Scheduler {
  public:
    // Runs one block to its end; returns early, its threads dropped, when shared memory is exceeded.
    void run(Launch& launch, std::uint64_t block_number);

    unsigned barrier(unsigned line, bool predicate, unsigned* arrived);
    LaneMask wave_operation(WaveOp op, unsigned line, LaneMask mask, LaneMask value, unsigned source,
                            LaneMask* collected);
    void claim_shared(void* variable, std::size_t bytes);
    void yield();

    static Scheduler& of_this_thread();

  private:
    static void fiber_main(hip_cpu_transfer from);
    void begin_block(Launch& launch, std::uint64_t block_number);
    void start_threads();
    unsigned next_thread();
    void leave();
    void suspend();
    Fiber* pick();
    Fiber* idle_fiber();
    void switch_to(Fiber* to);
    void drop_fibers();

    void release_barrier(bool keep_current);
    bool try_release(Wave& wave, bool keep_current);
    void release(Wave& wave, LaneMask group, bool keep_current);
    void run_together(const Wave& wave, LaneMask group) const;
    LaneMask result_of(const Wave& wave, LaneMask group, unsigned lane, LaneMask ballot) const;
    LaneMask group_of(const Wave& wave, unsigned lane) const;
    LaneMask releasable_group(const Wave& wave) const;
    void resolve_stall();
    [[noreturn]] void fail_barrier();
    [[noreturn]] void fail_shared();
    [[noreturn]] void fail_wave(unsigned wave_number);

    void make_ready(Fiber* fiber) { ready_[ready_end_++ % max_block_threads] = fiber; }

    Launch* launch_ = nullptr;
    unsigned threads_ = 0, started_ = 0, live_ = 0;
    std::size_t static_shared_ = 0;
    std::vector<const void*> claimed_;  // the shared variables of this block that lie in guarded memory
    char* dynamic_end_ = nullptr;
    unsigned next_wave_ = 0, first_thread_ = 0, lanes_ = 0, lanes_left_ = 0;  // of threads that begin
    Barrier barrier_;
    Fiber* at_barrier_[max_block_threads];
    unsigned barrier_lines_[max_block_threads];
    Fiber* ready_[max_block_threads];
    unsigned ready_begin_ = 0, ready_end_ = 0;
    Wave waves_[max_block_threads / 32];
    Fiber home_;  // the OS thread's own stack
    Fiber* current_ = &home_;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;
};

extern __thread Scheduler* active;  // the one whose block runs on this OS thread

}  // namespace hip_cpu
