// Integer and bit intrinsics, loads and stores with cache hints, clocks.
#pragma once

#include <time.h>

#include <cstring>

#include "hip_cpu/thread.h"

namespace hip_cpu {
template <class To, class From> inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
    return to;
}
inline long long nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
}  // namespace hip_cpu

inline int __float_as_int(float x) { return hip_cpu::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return hip_cpu::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return hip_cpu::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return hip_cpu::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return hip_cpu::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return hip_cpu::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
    return __longlong_as_double(static_cast<long long>(static_cast<unsigned long long>(high) << 32 |
                                                       static_cast<unsigned>(low)));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __ffsll(unsigned long long x) { return __builtin_ffsll(static_cast<long long>(x)); }
inline int __ffsll(unsigned long x) { return __builtin_ffsll(static_cast<long long>(x)); }
inline int __ffsll(long x) { return __builtin_ffsll(x); }
inline int __ffs(unsigned long x) { return __ffsll(x); }
inline int __ffs(unsigned long long x) { return __ffsll(x); }

inline unsigned long long __brevll(unsigned long long x) {
    x = (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
    x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
    return __builtin_bswap64(x);
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }

inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return c + (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b) : static_cast<unsigned>(b) - static_cast<unsigned>(a));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return (a & b) + ((a ^ b) >> 1); }

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned at = selector >> (4 * i) & 0xf;
        unsigned byte = bytes >> (8 * (at & 7)) & 0xff;
        if (at & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both >> (shift & 31));
}

inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
    return c;
}
inline int __dp4a(char4 a, char4 b, int c) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w + c; }
inline int amd_mixed_dot(char4 a, char4 b, int c, bool) { return __dp4a(a, b, c); }

template <class T> inline T __ldg(const T* address) { return *address; }
template <class T> inline T __ldcg(const T* address) { return *address; }
template <class T> inline T __ldcs(const T* address) { return *address; }
template <class T> inline T __ldca(const T* address) { return *address; }
template <class T> inline void __stcs(T* address, T value) { *address = value; }
template <class T> inline void __stcg(T* address, T value) { *address = value; }
#ifndef __clang__  // which has these two built in
template <class T> inline T __builtin_nontemporal_load(const T* address) { return *address; }
template <class T, class U> inline void __builtin_nontemporal_store(T value, U* address) { *address = value; }
#endif

inline long long clock64() { return hip_cpu::nanoseconds(); }
inline long long wall_clock64() { return hip_cpu::nanoseconds() / 10; }  // 100 MHz, as on AMD
