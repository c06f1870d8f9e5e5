// The part of cooperative groups inside one block: thread_block, tiled_partition and its tiles.
#pragma once

#include "hip/hip_runtime.h"

namespace cooperative_groups {

class thread_block {
  public:
    void sync(unsigned line = __builtin_LINE()) const { hip_cpu::block_barrier(line, false); }
    unsigned thread_rank() const { return hip_cpu::context.linear; }
    unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
    unsigned num_threads() const { return size(); }
    dim3 group_index() const { return blockIdx; }
    dim3 thread_index() const { return threadIdx; }
    dim3 group_dim() const { return blockDim; }
};

inline thread_block this_thread_block() { return {}; }

// `Size` adjacent threads of a wave. Its operations wait for exactly these lanes.
template <unsigned Size, class Parent = void> class thread_block_tile {
    static_assert(Size > 0 && (Size & (Size - 1)) == 0 && Size <= HIP_CPU_WAVE_SIZE,
                  "the size of a tile is a power of two, at most the wave size");

  public:
    thread_block_tile() = default;
    template <class Other> thread_block_tile(const thread_block_tile<Size, Other>&) {}  // NOLINT: as HIP's

    unsigned thread_rank() const { return hip_cpu::context.linear % Size; }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    unsigned meta_group_rank() const { return hip_cpu::context.linear / Size; }
    unsigned meta_group_size() const { return (this_thread_block().size() + Size - 1) / Size; }

    void sync(unsigned line = __builtin_LINE()) const {
        hip_cpu::wave_operation(hip_cpu::WaveOp::sync, line, mask(), 0, 0);
    }
    template <class T> T shfl(T value, int rank, unsigned line = __builtin_LINE()) const {
        return hip_cpu::shuffle(value, hip_cpu::from_index(rank, Size), mask(), line);
    }
    template <class T> T shfl_down(T value, unsigned delta, unsigned line = __builtin_LINE()) const {
        return hip_cpu::shuffle(value, hip_cpu::from_down(delta, Size), mask(), line);
    }
    template <class T> T shfl_up(T value, unsigned delta, unsigned line = __builtin_LINE()) const {
        return hip_cpu::shuffle(value, hip_cpu::from_up(delta, Size), mask(), line);
    }
    template <class T> T shfl_xor(T value, unsigned with, unsigned line = __builtin_LINE()) const {
        return hip_cpu::shuffle(value, hip_cpu::from_xor(static_cast<int>(with), Size), mask(), line);
    }
    int any(int predicate, unsigned line = __builtin_LINE()) const { return ballot(predicate, line) != 0; }
    int all(int predicate, unsigned line = __builtin_LINE()) const {
        return static_cast<int>(hip_cpu::wave_operation(hip_cpu::WaveOp::all, line, mask(), predicate != 0, 0));
    }
    unsigned long long ballot(int predicate, unsigned line = __builtin_LINE()) const {
        return hip_cpu::wave_operation(hip_cpu::WaveOp::ballot, line, mask(), predicate != 0, 0) >> first_lane();
    }

  private:
    static unsigned first_lane() { return hip_cpu::lane() & ~(Size - 1); }
    static hip_cpu::LaneMask mask() { return (Size == 64 ? ~0ull : (1ull << Size % 64) - 1) << first_lane(); }
};

template <unsigned Size, class Parent> thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }

template <class Group> void sync(const Group& group, unsigned line = __builtin_LINE()) { group.sync(line); }

}  // namespace cooperative_groups
