// Fibers, the order in which threads run, the block barrier and shared memory. Wave operations are in wave.cpp.
#include "scheduler.h"

#include <cstring>

extern "C" {
alignas(64) __thread char hip_cpu_dynamic_shared[hip_cpu::max_shared_bytes];
}

namespace hip_cpu {

__thread Context context;
__thread Scheduler* active;

namespace {
std::atomic<unsigned long> serials{0};
std::atomic<bool> dynamic_array{false};

template <class Number> uint3 position(Number number, const uint3& size) {
    if (number < size.x) return {static_cast<unsigned>(number), 0, 0};
    const Number row = number / size.x;
    return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(row % size.y),
            static_cast<unsigned>(row / size.y)};
}
}  // namespace

Scheduler& Scheduler::of_this_thread() {
    static thread_local std::unique_ptr<Scheduler> scheduler(new Scheduler);
    return *scheduler;
}

void Scheduler::run(Launch& launch, std::uint64_t block_number) {
    active = this;
    begin_block(launch, block_number);
    current_ = &home_;
    switch_to(idle_fiber());
    context.block_serial = 0;
    for (const void* first : claimed_) {
        if (!Guarded::intact(first)) fail_shared();
    }
    if (live_ != 0) drop_fibers();
}

void Scheduler::begin_block(Launch& launch, std::uint64_t block_number) {
    launch_ = &launch;
    threads_ = live_ = launch.block.x * launch.block.y * launch.block.z;
    started_ = 0;
    next_wave_ = lanes_left_ = 0;
    ready_begin_ = ready_end_ = 0;
    static_shared_ = 0;
    barrier_ = Barrier();
    for (unsigned first = 0, w = 0; first < threads_; first += launch.wave_size, ++w) {
        const unsigned lanes = threads_ - first < launch.wave_size ? threads_ - first : launch.wave_size;
        waves_[w].live = lanes == 64 ? ~0ull : (1ull << lanes) - 1;
        waves_[w].waiting = 0;
    }
    context.block_index = position(block_number, launch.grid);
    context.block_size = launch.block;
    context.grid_size = launch.grid;
    context.block_serial = ++serials;
    claimed_.clear();
    std::memset(hip_cpu_dynamic_shared, 0xff, launch.shared_bytes);
    if (!dynamic_end_) dynamic_end_ = Guarded::allocate(max_shared_bytes, 16) + max_shared_bytes;
    char* const dynamic = dynamic_end_ - (launch.shared_bytes + 15) / 16 * 16;
    std::memset(dynamic - Guarded::before, Guarded::poison,
                Guarded::before + static_cast<std::size_t>(dynamic_end_ - dynamic));
    context.dynamic_shared = dynamic_array ? hip_cpu_dynamic_shared : dynamic;
    claimed_.push_back(dynamic);
}

void Scheduler::fiber_main(hip_cpu_transfer from) {
    *static_cast<void**>(from.data) = from.from;
    Scheduler& self = *active;
    for (;;) {
        Fiber* const mine = self.current_;
        self.start_threads();
        self.idle_.push_back(mine);
        self.switch_to(self.pick());
    }
}

// Runs threads on the current fiber until all have begun. A thread that waits takes the fiber along.
void Scheduler::start_threads() {
    while (started_ < threads_) {
        Fiber& fiber = *current_;
        ++started_;
        fiber.linear = context.linear = next_thread();
        fiber.thread_index = context.thread_index = position(fiber.linear, launch_->block);
        launch_->thread(launch_->argument);
        leave();
    }
}

// The thread that begins next: the waves in the order of the launch, the lanes of each together.
unsigned Scheduler::next_thread() {
    if (lanes_left_ == 0) {
        const unsigned size = launch_->wave_size, waves = (threads_ + size - 1) / size;
        first_thread_ = static_cast<unsigned>(launch_->order.at(next_wave_++, waves)) * size;
        lanes_ = lanes_left_ = threads_ - first_thread_ < size ? threads_ - first_thread_ : size;
    }
    const unsigned turn = lanes_ - lanes_left_--;
    return first_thread_ + (launch_->order.lanes_descend() ? lanes_ - 1 - turn : turn);
}

// The current thread has returned: it no longer counts at barriers or in its wave.
void Scheduler::leave() {
    --live_;
    if (barrier_.arrived && barrier_.arrived == live_) release_barrier(false);
    Wave& wave = waves_[current_->linear / launch_->wave_size];
    wave.live &= ~(1ull << current_->linear % launch_->wave_size);
    if (wave.waiting) try_release(wave, false);
}

void Scheduler::suspend() {
    Fiber* const self = current_;
    Fiber* const next = pick();
    if (next != self) switch_to(next);
}

Fiber* Scheduler::pick() {
    for (;;) {
        if (ready_begin_ != ready_end_) return ready_[ready_begin_++ % max_block_threads];
        if (started_ < threads_) return idle_fiber();
        if (live_ == 0) return &home_;
        resolve_stall();
    }
}

Fiber* Scheduler::idle_fiber() {
    if (idle_.empty()) {
        fibers_.emplace_back(new Fiber);
        fibers_.back()->prepare(fiber_main, static_cast<unsigned>(fibers_.size()));
        return fibers_.back().get();
    }
    Fiber* const fiber = idle_.back();
    idle_.pop_back();
    return fiber;
}

void Scheduler::switch_to(Fiber* to) {
    Fiber* const self = current_;
    current_ = to;
    const hip_cpu_transfer from = jump_fcontext(to->context, &self->context);
    *static_cast<void**>(from.data) = from.from;
    current_ = self;
    context.thread_index = self->thread_index;
    context.linear = self->linear;
}

void Scheduler::drop_fibers() {
    idle_.clear();
    for (std::size_t i = fibers_.size(); i-- > 0;) {
        fibers_[i]->prepare(fiber_main, static_cast<unsigned>(i + 1));
        idle_.push_back(fibers_[i].get());
    }
}

unsigned Scheduler::barrier(unsigned line, bool predicate, unsigned* arrived) {
    if (barrier_.arrived == 0) {
        barrier_.line = line;
        barrier_.mixed = false;
        barrier_.ones = 0;
    }
    barrier_.mixed |= line != barrier_.line;
    barrier_.ones += predicate;
    at_barrier_[barrier_.arrived] = current_;
    barrier_lines_[barrier_.arrived++] = line;
    if (barrier_.arrived == live_) {
        release_barrier(true);
    } else {
        suspend();
    }
    if (arrived) *arrived = barrier_.result_arrived;
    return barrier_.result_ones;
}

void Scheduler::release_barrier(bool keep_current) {
    if (barrier_.mixed) fail_barrier();
    for (unsigned i = 0; i < barrier_.arrived; ++i) {
        if (!(keep_current && at_barrier_[i] == current_)) make_ready(at_barrier_[i]);
    }
    barrier_.result_ones = barrier_.ones;
    barrier_.result_arrived = barrier_.arrived;
    barrier_.arrived = 0;
}

void Scheduler::fail_barrier() {
    const uint3 b = context.block_index, first = at_barrier_[0]->thread_index;
    unsigned other = 0;
    while (other + 1 < barrier_.arrived && barrier_lines_[other] == barrier_.line) ++other;
    const uint3 second = at_barrier_[other]->thread_index;
    std::fprintf(stderr,
                 "HIP on CPU: divergent barrier in block (%u, %u, %u): thread (%u, %u, %u) waits at the "
                 "__syncthreads of line %u, thread (%u, %u, %u) at that of line %u. On a GPU this hangs or "
                 "corrupts shared memory.\n",
                 b.x, b.y, b.z, first.x, first.y, first.z, barrier_.line, second.x, second.y, second.z,
                 barrier_lines_[other]);
    std::abort();
}

void Scheduler::claim_shared(void* variable, std::size_t bytes) {
    static_shared_ += bytes;
    if (static_shared_ + launch_->shared_bytes > max_shared_bytes) {
        launch_->shared_exceeded = true;
        switch_to(&home_);  // never comes back: `run` drops the fibers of this block
    }
    std::memset(variable, 0xff, bytes);
    if (Guarded::holds(variable)) claimed_.push_back(variable);
}

void Scheduler::fail_shared() {
    const uint3 b = context.block_index;
    std::fprintf(stderr,
                 "HIP on CPU: block (%u, %u, %u) wrote before the first byte of a __shared__ variable. On a GPU this "
                 "changes another one.\n",
                 b.x, b.y, b.z);
    std::abort();
}

void Scheduler::yield() {
    make_ready(current_);
    Fiber* const next = started_ < threads_ ? idle_fiber() : pick();
    if (next != current_) switch_to(next);
}

void claim_shared(void* variable, std::size_t bytes) noexcept {
    if (context.block_serial == 0) return;  // a namespace-scope variable, when the library is loaded
    active->claim_shared(variable, bytes);
}

void* place_shared(std::size_t bytes, std::size_t align) noexcept { return Guarded::allocate(bytes, align); }

bool use_dynamic_array() noexcept { return dynamic_array = true; }

unsigned block_barrier(unsigned line, bool predicate, unsigned* arrived) noexcept {
    return active->barrier(line, predicate, arrived);
}

void yield() noexcept { active->yield(); }

}  // namespace hip_cpu
