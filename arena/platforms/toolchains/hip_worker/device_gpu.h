// A GPU through HIP's runtime API, which on NVIDIA is CUDA's under other names.
#pragma once

#include <hip/hip_runtime.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>

#include "entry.h"
#include "frames.h"

__global__ void touch_kernel(float* cell) { *cell = 1.0f; }

class Device {
  public:
    static constexpr bool spins = true;
    using Stream = hipStream_t;

    // What a call gets as its stream.
    static Stream passed(Stream stream) { return stream; }

    static void check(hipError_t code, const char* what) {
        if (code == hipSuccess) return;
        (void)hipGetLastError();  // else the next launch is blamed for it
        const std::string said = std::string(what) + " returned error " + std::to_string(static_cast<int>(code)) + " (" +
                                 hipGetErrorName(code) + ": " + hipGetErrorString(code) + ")";
        throw Failure(code == hipErrorOutOfMemory ? "out_of_memory" : "launch_error", said);
    }

    // Another process's allocation; a lasting one is mapped once, since mapping gigabytes takes a while.
    static char* open(const std::string& handle, bool lasting, std::uint64_t, const std::vector<int>&) {
        const auto known = mapped().find(handle);
        if (known != mapped().end()) return known->second;
        hipIpcMemHandle_t raw;
        if (handle.size() != sizeof raw) throw Malformed("an inter-process handle of another size");
        std::memcpy(&raw, handle.data(), sizeof raw);
        void* first = nullptr;
        check(hipIpcOpenMemHandle(&first, raw, hipIpcMemLazyEnablePeerAccess), "hipIpcOpenMemHandle");
        if (lasting) mapped()[handle] = static_cast<char*>(first);
        return static_cast<char*>(first);
    }

    static void close(char* first, bool lasting, std::uint64_t) {
        if (!lasting) check(hipIpcCloseMemHandle(first), "hipIpcCloseMemHandle");
    }

    static char* allocate(std::size_t bytes, int fill) {
        void* first = nullptr;
        check(hipMalloc(&first, bytes), "hipMalloc");
        check(hipMemset(first, fill, bytes), "hipMemset");
        synchronize();
        return static_cast<char*>(first);
    }

    static void free(char* first, std::size_t) { check(hipFree(first), "hipFree"); }

    static void read(void* to, const char* from, std::size_t pitch, std::size_t width, std::size_t rows) {
        check(hipMemcpy2D(to, width, from, pitch, width, rows, hipMemcpyDeviceToHost), "hipMemcpy2D");
    }

    static void write(char* to, std::size_t pitch, const void* from, std::size_t width, std::size_t rows) {
        check(hipMemcpy2D(to, pitch, from, width, width, rows, hipMemcpyHostToDevice), "hipMemcpy2D");
    }

    static void synchronize() { check(hipDeviceSynchronize(), "hipDeviceSynchronize"); }

    // Local memory grows to what the hungriest kernel of a process needed, and kernels that spill feel it: so every worker
    // gets the same, `LOCAL_BYTES` of arena/platforms/cuda/platform.py, before its first kernel. Not measured on AMD, and not set.
    static void fix_local_memory() {
#ifdef __HIP_PLATFORM_NVIDIA__
        static const bool fixed = (check(cudaDeviceSetLimit(cudaLimitStackSize, 4096), "cudaDeviceSetLimit"), true);
        (void)fixed;
#endif
    }

    // One tiny kernel: switching the device between processes costs some 0.2 ms, and varies.
    static void wait_until_idle() {
        touching()(nullptr);
        synchronize();
    }

    static const char* error_name(int code) { return hipGetErrorName(static_cast<hipError_t>(code)); }

    // The device chooses the order of blocks.
    static int call(const Entry& entry, const Frame& frame, std::uint64_t) { return entry.call(frame); }

    static std::function<void(Stream)> touching() {
        static float* const cell = reinterpret_cast<float*>(allocate(sizeof(float), 0));
        return [](Stream stream) {
            touch_kernel<<<dim3(1), dim3(1), 0, stream>>>(cell);
            check(hipGetLastError(), "the launch of the worker's own kernel");
        };
    }

    // One pass over calls: issued one by one, or captured once and replayed, which has no launch overhead in it.
    class Pass {
      public:
        Pass(std::function<void(Stream)> issue, bool graph) : issue_(std::move(issue)) {
            if (graph) capture();
        }
        Pass(const Pass&) = delete;
        Pass& operator=(const Pass&) = delete;
        ~Pass() {
            if (!replayed_) return;
            (void)hipGraphExecDestroy(replayed_);
            (void)hipStreamDestroy(stream_);
        }

        double run() {
            const auto started = std::chrono::steady_clock::now();
            if (replayed_) check(hipGraphLaunch(replayed_, nullptr), "hipGraphLaunch");
            else issue_(nullptr);
            synchronize();
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        }

      private:
        void capture() {
            try {
                synchronize();
                check(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking), "hipStreamCreateWithFlags");
                hipGraph_t graph = captured();
                check(hipGraphInstantiateWithFlags(&replayed_, graph, 0), "hipGraphInstantiate");
                check(hipGraphDestroy(graph), "hipGraphDestroy");
                // Replayed once, so that instantiation and upload are not in the first timed pass.
                check(hipGraphLaunch(replayed_, nullptr), "hipGraphLaunch");
                synchronize();
            } catch (const Failure& problem) {
                throw Failure("not_capturable", problem.what());
            }
        }

        hipGraph_t captured() {
            hipGraph_t graph = nullptr;
            check(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal), "hipStreamBeginCapture");
            try {
                issue_(stream_);
            } catch (const Failure&) {
                (void)hipStreamEndCapture(stream_, &graph);
                (void)hipGetLastError();
                throw;
            }
            check(hipStreamEndCapture(stream_, &graph), "hipStreamEndCapture");
            return graph;
        }

        std::function<void(Stream)> issue_;
        hipStream_t stream_ = nullptr;
        hipGraphExec_t replayed_ = nullptr;
    };

  private:
    static std::map<std::string, char*>& mapped() {
        static std::map<std::string, char*> buffers;
        return buffers;
    }
};
