// Wave-level operations: shuffles, votes, matches and reductions, at HIP_CPU_WAVE_SIZE lanes.
//
// An operation without a mask joins the lanes that reach it together; one with a mask waits for exactly the lanes
// it names. Lanes that have returned do not count. A shuffle from a lane that does not take part reads 0.
#pragma once

#include <cstring>

#include "hip_cpu/thread.h"

#pragma GCC visibility push(hidden)
namespace hip_cpu {

using LaneMask = unsigned long long;
constexpr LaneMask active_lanes = 0;  // in place of a mask: whichever lanes come here together

enum class WaveOp : unsigned { shuffle, ballot, any, all, active, sync, collect, together };

// What a lane brings to an operation that is done once for a full wave: the address is the value of `together`.
struct Together {
    void (*run)(Together* const* lanes);
    const char* name;
    unsigned lanes;  // of a wave that has this operation
};

// Meets the other lanes at this operation. `value` is what this lane brings, `source` the lane it reads from.
// With `collected`, every taking part lane's value is written there and the result is the mask of these lanes.
HIP_CPU_SEAM LaneMask wave_operation(WaveOp op, unsigned line, LaneMask mask, LaneMask value, unsigned source,
                                     LaneMask* collected = nullptr) noexcept;

inline unsigned lane() { return context.linear % HIP_CPU_WAVE_SIZE; }

template <class M> constexpr LaneMask lane_mask(M mask) {
    static_assert(std::is_integral<M>::value, "the mask of a _sync operation is an integer");
    static_assert(HIP_CPU_WAVE_SIZE == 32 || sizeof(M) == 8, "The mask must be a 64-bit integer at wave size 64.");
    constexpr LaneMask lanes = HIP_CPU_WAVE_SIZE == 64 ? ~0ull : 0xffffffffull;
    const LaneMask named = static_cast<LaneMask>(static_cast<std::make_unsigned_t<M>>(mask)) & lanes;
    return named;
}

template <class T> T shuffle(T value, unsigned source, LaneMask mask, unsigned line) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    LaneMask bits = 0;
    std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
    bits = wave_operation(WaveOp::shuffle, line, mask, bits, source);
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    return value;
}

inline unsigned from_index(int index, int width) {
    return (index & (width - 1)) + (lane() & ~(width - 1));
}
inline unsigned from_up(unsigned delta, int width) {
    const int source = static_cast<int>(lane() - delta);
    return source < static_cast<int>(lane() & ~(width - 1)) ? lane() : source;
}
inline unsigned from_down(unsigned delta, int width) {
    return (lane() & (width - 1)) + delta >= static_cast<unsigned>(width) ? lane() : lane() + delta;
}
inline unsigned from_xor(int mask, int width) {
    const unsigned source = lane() ^ mask;
    return source >= ((lane() + width) & ~(width - 1)) ? lane() : source;
}

template <class T, class F> T reduce(LaneMask mask, T value, unsigned line, F combine) {
    LaneMask bits = 0, all[64];
    std::memcpy(&bits, &value, sizeof(T));
    LaneMask present = wave_operation(WaveOp::collect, line, mask, bits, 0, all);
    bool first = true;
    for (; present; present &= present - 1) {
        T other;
        std::memcpy(&other, &all[__builtin_ctzll(present)], sizeof(T));
        value = first ? other : combine(value, other);
        first = false;
    }
    return value;
}

inline LaneMask match(LaneMask mask, LaneMask bits, unsigned line, LaneMask* present) {
    LaneMask all[64], same = 0;
    *present = wave_operation(WaveOp::collect, line, mask, bits, 0, all);
    for (LaneMask left = *present; left; left &= left - 1) {
        const int other = __builtin_ctzll(left);
        if (all[other] == bits) same |= 1ull << other;
    }
    return same;
}

template <class T> LaneMask bits_of(T value) {
    LaneMask bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

}  // namespace hip_cpu
#pragma GCC visibility pop

#define HIP_CPU_SHUFFLE(name, Index, source)                                                               \
    template <class T> T name(T value, Index at, int width = warpSize, unsigned line = __builtin_LINE()) {  \
        return hip_cpu::shuffle(value, hip_cpu::source(at, width), hip_cpu::active_lanes, line);            \
    }                                                                                                      \
    template <class M, class T>                                                                            \
    T name##_sync(M mask, T value, Index at, int width = warpSize, unsigned line = __builtin_LINE()) {     \
        return hip_cpu::shuffle(value, hip_cpu::source(at, width), hip_cpu::lane_mask(mask), line);         \
    }
HIP_CPU_SHUFFLE(__shfl, int, from_index)
HIP_CPU_SHUFFLE(__shfl_up, unsigned, from_up)
HIP_CPU_SHUFFLE(__shfl_down, unsigned, from_down)
HIP_CPU_SHUFFLE(__shfl_xor, int, from_xor)
#undef HIP_CPU_SHUFFLE

#define HIP_CPU_VOTE(name, Result, op)                                                                 \
    inline Result name(int predicate, unsigned line = __builtin_LINE()) {                              \
        return hip_cpu::wave_operation(hip_cpu::WaveOp::op, line, hip_cpu::active_lanes, predicate != 0, 0); \
    }                                                                                                  \
    template <class M> Result name##_sync(M mask, int predicate, unsigned line = __builtin_LINE()) {   \
        return hip_cpu::wave_operation(hip_cpu::WaveOp::op, line, hip_cpu::lane_mask(mask), predicate != 0, 0); \
    }
HIP_CPU_VOTE(__ballot, unsigned long long, ballot)
HIP_CPU_VOTE(__any, int, any)
HIP_CPU_VOTE(__all, int, all)
#undef HIP_CPU_VOTE

inline unsigned long long __activemask(unsigned line = __builtin_LINE()) {
    return hip_cpu::wave_operation(hip_cpu::WaveOp::active, line, hip_cpu::active_lanes, 0, 0);
}
inline void __syncwarp(unsigned long long mask = hip_cpu::active_lanes, unsigned line = __builtin_LINE()) {
    const hip_cpu::LaneMask named = mask == hip_cpu::active_lanes ? mask : hip_cpu::lane_mask(mask);
    hip_cpu::wave_operation(hip_cpu::WaveOp::sync, line, named, 0, 0);
}

template <class M, class T> unsigned long long __match_any_sync(M mask, T value, unsigned line = __builtin_LINE()) {
    unsigned long long present;
    return hip_cpu::match(hip_cpu::lane_mask(mask), hip_cpu::bits_of(value), line, &present);
}
template <class T> unsigned long long __match_any(T value, unsigned line = __builtin_LINE()) {
    unsigned long long present;
    return hip_cpu::match(hip_cpu::active_lanes, hip_cpu::bits_of(value), line, &present);
}
template <class M, class T>
unsigned long long __match_all_sync(M mask, T value, int* all, unsigned line = __builtin_LINE()) {
    unsigned long long present;
    const auto same = hip_cpu::match(hip_cpu::lane_mask(mask), hip_cpu::bits_of(value), line, &present);
    *all = same == present;
    return *all ? same : 0;
}

#define HIP_CPU_REDUCE(name, expression)                                                              \
    template <class M, class T> T name(M mask, T value, unsigned line = __builtin_LINE()) {           \
        return hip_cpu::reduce(hip_cpu::lane_mask(mask), value, line,                                 \
                               [](T a, T b) { return static_cast<T>(expression); });                  \
    }
HIP_CPU_REDUCE(__reduce_add_sync, a + b)
HIP_CPU_REDUCE(__reduce_min_sync, b < a ? b : a)
HIP_CPU_REDUCE(__reduce_max_sync, a < b ? b : a)
HIP_CPU_REDUCE(__reduce_and_sync, a & b)
HIP_CPU_REDUCE(__reduce_or_sync, a | b)
HIP_CPU_REDUCE(__reduce_xor_sync, a ^ b)
#undef HIP_CPU_REDUCE

inline unsigned __lane_id() { return hip_cpu::lane(); }
