// Three counters in memory shared with the judge, by which passes are timed: as in `arena/processes/flags.py`, which says why.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "frames.h"

class Flags {
  public:
    explicit Flags(int file) {
        void* const memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) throw Malformed("the flags cannot be mapped");
        close(file);
        words_ = static_cast<std::int64_t*>(memory);
    }

    // Run a pass when the judge says so, and say when it is over and how long it took; false where the judge does not.
    template <class Run>
    bool run(const Run& timed_pass) {
        ++passes_;
        __atomic_store_n(words_ + ready, passes_, __ATOMIC_RELEASE);
        if (!await_go()) return false;
        const double took_s = timed_pass();
        std::memcpy(words_ + seconds, &took_s, sizeof took_s);
        __atomic_store_n(words_ + done, passes_, __ATOMIC_RELEASE);
        return true;
    }

  private:
    static constexpr std::size_t num_bytes = 4096;
    static constexpr int ready = 0, go = 8, done = 16, seconds = 24, polls = 2048;
    static constexpr double longest_wait_s = 30.0;

    bool await_go() const {
        const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(longest_wait_s);
        while (std::chrono::steady_clock::now() < until) {
            for (int poll = 0; poll < polls; ++poll) {
                if (__atomic_load_n(words_ + go, __ATOMIC_ACQUIRE) == passes_) return true;
            }
        }
        return false;
    }

    std::int64_t* words_ = nullptr;
    std::int64_t passes_ = 0;
};
