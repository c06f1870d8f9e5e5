// Atomics on global and shared memory. Real, relaxed ones: a candidate may launch from several OS threads.
#pragma once

#include <cstring>

#include "hip_cpu/thread.h"

namespace hip_cpu {

template <std::size_t N> struct Word;
template <> struct Word<2> { using type = std::uint16_t; };
template <> struct Word<4> { using type = std::uint32_t; };
template <> struct Word<8> { using type = std::uint64_t; };

// *address = update(*address), whatever the type; returns what was there. Gives up the store when nothing changes.
template <class T, class F> T atomic_update(T* address, F update) {
    using W = typename Word<sizeof(T)>::type;
    W* const word = reinterpret_cast<W*>(address);
    W seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T before;
        std::memcpy(static_cast<void*>(&before), &seen, sizeof(T));
        const T after = update(before);
        W wanted;
        std::memcpy(&wanted, static_cast<const void*>(&after), sizeof(T));
        if (wanted == seen) return before;
        if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return before;
    }
}

template <class T> struct Same { using type = T; };
template <class T> using Given = typename Same<T>::type;  // keeps an argument out of deduction, so that it converts

}  // namespace hip_cpu

#define HIP_CPU_ATOMIC(name, body)                                                           \
    template <class T> inline T name(T* address, hip_cpu::Given<T> value) { body }           \
    template <class T> inline T name##_block(T* address, hip_cpu::Given<T> value) { body }   \
    template <class T> inline T name##_system(T* address, hip_cpu::Given<T> value) { body }

#define HIP_CPU_ATOMIC_UPDATE(name, expression) \
    HIP_CPU_ATOMIC(name, return hip_cpu::atomic_update(address, [value](T old) -> T { return expression; });)

HIP_CPU_ATOMIC(atomicAdd, if constexpr (std::is_integral<T>::value) {
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
} else { return hip_cpu::atomic_update(address, [value](T old) -> T { return old + value; }); })
HIP_CPU_ATOMIC_UPDATE(atomicSub, static_cast<T>(old - value))
HIP_CPU_ATOMIC_UPDATE(atomicMin, value < old ? value : old)
HIP_CPU_ATOMIC_UPDATE(atomicMax, old < value ? value : old)
HIP_CPU_ATOMIC_UPDATE(atomicInc, old >= value ? T(0) : T(old + 1))
HIP_CPU_ATOMIC_UPDATE(atomicDec, old == T(0) || old > value ? value : T(old - 1))
HIP_CPU_ATOMIC_UPDATE(atomicAnd, static_cast<T>(old & value))
HIP_CPU_ATOMIC_UPDATE(atomicOr, static_cast<T>(old | value))
HIP_CPU_ATOMIC_UPDATE(atomicXor, static_cast<T>(old ^ value))
HIP_CPU_ATOMIC_UPDATE(atomicExch, value)
#undef HIP_CPU_ATOMIC
#undef HIP_CPU_ATOMIC_UPDATE

// Compares bits, as the hardware does: a float NaN can be exchanged, and -0.0 is not 0.0.
template <class T> inline T atomicCAS(T* address, hip_cpu::Given<T> expected, hip_cpu::Given<T> desired) {
    using W = typename hip_cpu::Word<sizeof(T)>::type;
    W seen, wanted;
    std::memcpy(&seen, &expected, sizeof(T));
    std::memcpy(&wanted, &desired, sizeof(T));
    __atomic_compare_exchange_n(reinterpret_cast<W*>(address), &seen, wanted, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    T before;
    std::memcpy(&before, &seen, sizeof(T));
    return before;
}
template <class T> inline T atomicCAS_block(T* address, hip_cpu::Given<T> expected, hip_cpu::Given<T> desired) {
    return atomicCAS(address, expected, desired);
}
template <class T> inline T atomicCAS_system(T* address, hip_cpu::Given<T> expected, hip_cpu::Given<T> desired) {
    return atomicCAS(address, expected, desired);
}

template <class T> inline T unsafeAtomicAdd(T* address, hip_cpu::Given<T> value) { return atomicAdd(address, value); }
template <class T> inline T safeAtomicAdd(T* address, hip_cpu::Given<T> value) { return atomicAdd(address, value); }
template <class T> inline T atomicAddNoRet(T* address, hip_cpu::Given<T> value) { return atomicAdd(address, value); }
