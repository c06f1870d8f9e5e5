// Device memory is out of the host's reach on a GPU; here it can be, between kernels and copies.
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

    // Takes whole pages out of reach; no bytes give the last ones back. Returns 0, or what errno says.
    static int keep_out(void* first, std::size_t bytes);

  private:
    static void allow(bool reachable);
};

}  // namespace hip_cpu
