// The CPU as a device: memory that a file holds, out of the host's reach but for kernels; nothing is captured.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "worker.h"

class Device {
  public:
    static constexpr bool spins = false;
    using Stream = void*;

    static char* open(const std::string&, bool, std::uint64_t bytes, const std::vector<int>& files) {
        if (files.empty()) throw Failure("launch_error", "a CPU buffer travels as a file descriptor");
        void* const first = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, files[0], 0);
        if (first == MAP_FAILED) throw Failure("out_of_memory", "the shared buffer cannot be mapped");
        protect(first, bytes);
        return static_cast<char*>(first);
    }

    static void close(char* first, bool, std::uint64_t bytes) {
        hip_cpu_worker_remove(first);
        munmap(first, bytes);
    }

    static char* allocate(std::size_t bytes, int fill) {
        void* const first = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (first == MAP_FAILED) throw Failure("out_of_memory", "no memory is left for scratch");
        fill_lazily(static_cast<char*>(first), fill, bytes);
        protect(first, bytes);
        return static_cast<char*>(first);
    }

    static void free(char* first, std::size_t bytes) { close(first, false, bytes); }

    // Copies of `rows` rows of `width` bytes between the device and the worker's own memory.
    static void read(void* to, const char* from, std::size_t pitch, std::size_t width, std::size_t rows) {
        touch([=] {
            for (std::size_t row = 0; row < rows; ++row) {
                std::memcpy(static_cast<char*>(to) + row * width, from + row * pitch, width);
            }
        });
    }

    static void write(char* to, std::size_t pitch, const void* from, std::size_t width, std::size_t rows) {
        touch([=] {
            for (std::size_t row = 0; row < rows; ++row) {
                std::memcpy(to + row * pitch, static_cast<const char*>(from) + row * width, width);
            }
        });
    }

    static void synchronize() {}
    static void fix_local_memory() {}

    static void wait_until_idle() {}
    static Stream stream() { return nullptr; }
    // What a call gets as its stream.
    static Stream passed(Stream) { return hip_cpu_worker_stream(); }

    static const char* error_name(int code) { return hip_cpu_worker_error_name(code); }

    // `order`: in which blocks and threads begin.
    static int call(const Entry& entry, const Frame& frame, std::uint64_t order) {
        hip_cpu_worker_order(order);
        hip_cpu_worker_begin_call();
        hip_cpu_worker_begin_streams();
        const int code = entry.call(frame);
        const char* const elsewhere = hip_cpu_worker_end_streams();
        const std::size_t copied = hip_cpu_worker_end_call();
        if (const char* const limit = hip_cpu_worker_grid_limit()) {
            throw Failure("grid_limit", "`" + entry.name() + "` " + limit);
        }
        if (elsewhere) {
            throw Failure("rule_violation",
                          "`" + entry.name() + "` " + elsewhere +
                              " on another stream than the one that it is given. On a GPU that is not ordered with "
                              "the rest of the call: pass `stream` to every launch, copy and fill");
        }
        if (copied != 0) {
            throw Failure("rule_violation",
                          "`" + entry.name() + "` copies " + std::to_string(copied) +
                              " bytes from the device to the host in one call; at most 4096 may be: on the CPU "
                              "platform the host would compute in the kernel's place. Compute in kernels");
        }
        return code;
    }

    // One pass over calls, by the worker's own clock.
    class Pass {
      public:
        Pass(std::function<void(Stream)> issue, bool graph) : issue_(std::move(issue)) {
            if (graph) throw Failure("not_capturable", "the CPU platform has no graphs");
        }
        double run() {
            const auto started = std::chrono::steady_clock::now();
            issue_(nullptr);
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        }

      private:
        std::function<void(Stream)> issue_;
    };

    static std::function<void(Stream)> touching() {
        return [](Stream) {};
    }

  private:
    // Beyond the first piece, pages take memory when they are written to: until then they are those of one file.
    static void fill_lazily(char* first, int fill, std::size_t bytes) {
        constexpr std::size_t piece = 16u << 20;
        std::memset(first, fill, std::min(bytes, piece));
        if (bytes <= piece) return;
        const int file = memfd_create("fill", MFD_CLOEXEC);
        const bool written = file >= 0 && ::write(file, first, piece) == static_cast<ssize_t>(piece);
        for (std::size_t at = piece; at < bytes; at += piece) {
            const std::size_t length = std::min(piece, bytes - at);
            constexpr int how = MAP_PRIVATE | MAP_FIXED;
            if (!written) std::memset(first + at, fill, length);
            else if (mmap(first + at, length, PROT_READ | PROT_WRITE, how, file, 0) == MAP_FAILED) {
                throw Failure("out_of_memory", "no memory is left for scratch");
            }
        }
        if (file >= 0) ::close(file);
    }

    static void protect(void* first, std::size_t bytes) {
        if (!hip_cpu_worker_add(first, bytes)) throw Failure("launch_error", "device memory cannot be protected");
    }

    static void touch(const std::function<void()>& work) {
        hip_cpu_worker_touch([](void* one) { (*static_cast<const std::function<void()>*>(one))(); },
                             const_cast<std::function<void()>*>(&work));
    }
};
