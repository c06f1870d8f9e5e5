// Device memory is out of the host's reach on a GPU; so it is here, but while kernels, copies and fills run.
#pragma once

#include <cstddef>
#include <mutex>

namespace hip_cpu {

class DeviceMemory {
  public:
    // While one of these lives, device memory can be touched: by kernels, by copies. One at a time in a process, so
    // that threads which a candidate starts do not make the emulation any faster.
    class InReach {
      public:
        InReach();
        ~InReach();

      private:
        std::lock_guard<std::recursive_mutex> alone_;
    };

    // Whole pages of new device memory; null where there are none.
    static void* allocate(std::size_t bytes);
    // Unmaps what `allocate` gave, or nothing for null; false for anything else.
    static bool free(void* first);

    // Takes whole pages that the worker mapped out of reach, and gives them back.
    static bool add(void* first, std::size_t bytes);
    static void remove(void* first);

    // How much a call may copy to the host: enough to read a count, too little to have the host compute.
    static bool refuses_copy(const void* to, const void* from, std::size_t bytes, bool said_to_be_to_host);
    static void begin_call();
    // Bytes that the host asked for since `begin_call` where they were too many, else 0.
    static std::size_t refused_bytes();

  private:
    static void allow(bool reachable);
};

}  // namespace hip_cpu
