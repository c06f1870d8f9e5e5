// __half and __half2: arithmetic, comparisons, conversions; every result correctly rounded to nearest even.
#pragma once

#include "hip/hip_runtime.h"
#include "hip_cpu/small_float.h"

struct __half_raw {
    unsigned short x;
};
struct __half {
    HIP_CPU_FLOAT16_MEMBERS(__half, __half_raw, 5, 10)
};
struct __half2_raw {
    unsigned short x, y;
};
struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    __half2(__half low, __half high) : x(low), y(high) {}
    explicit __half2(__half both) : x(both), y(both) {}
    __half2(const __half2_raw& raw) : x(__half::of_bits(raw.x)), y(__half::of_bits(raw.y)) {}
    operator __half2_raw() const { return {x.__x, y.__x}; }
};
typedef __half half;
typedef __half2 half2;

HIP_CPU_SMALL_FLOAT(__half, __half2)

inline __half2 make_half2(__half x, __half y) { return {x, y}; }

inline float __half2float(__half v) { return v; }
inline __half __float2half(float v) { return __half::narrow(v); }
inline __half __float2half_rn(float v) { return __half::narrow(v); }
inline __half __double2half(double v) { return __half::narrow(v); }
inline double __half2double(__half v) { return float(v); }

namespace hip_cpu {
// The half next to `v` on the asked side; `toward` is -1 (down), 1 (up) or 0 (to zero).
inline __half directed_half(float v, int toward) {
    const __half nearest = __half::narrow(v);
    const float back = nearest;
    if (back == v || v != v) return nearest;
    const bool want_lower = toward < 0 || (toward == 0 && v > 0);
    if (want_lower == (back < v)) return nearest;
    const unsigned short bits = nearest.__x;
    if ((bits & 0x7fff) == 0) return __half::of_bits(want_lower ? 0x8001 : 0x0001);
    return __half::of_bits(static_cast<unsigned short>(bits + ((bits >> 15) == want_lower ? 1 : -1)));
}
}  // namespace hip_cpu
inline __half __float2half_rz(float v) { return hip_cpu::directed_half(v, 0); }
inline __half __float2half_rd(float v) { return hip_cpu::directed_half(v, -1); }
inline __half __float2half_ru(float v) { return hip_cpu::directed_half(v, 1); }

inline __half __int2half_rn(int v) { return v; }
inline __half __uint2half_rn(unsigned v) { return v; }
inline __half __short2half_rn(short v) { return v; }
inline __half __ushort2half_rn(unsigned short v) { return v; }
inline __half __ll2half_rn(long long v) { return v; }
inline __half __ull2half_rn(unsigned long long v) { return v; }
inline int __half2int_rn(__half v) { return __float2int_rn(v); }
inline int __half2int_rz(__half v) { return __float2int_rz(v); }
inline int __half2int_rd(__half v) { return __float2int_rd(v); }
inline int __half2int_ru(__half v) { return __float2int_ru(v); }
inline unsigned __half2uint_rn(__half v) { return __float2uint_rn(v); }
inline unsigned __half2uint_rz(__half v) { return __float2uint_rz(v); }
inline short __half2short_rn(__half v) { return hip_cpu::saturating<short>(std::nearbyint(float(v))); }
inline short __half2short_rz(__half v) { return hip_cpu::saturating<short>(float(v)); }
inline unsigned short __half2ushort_rn(__half v) {
    return hip_cpu::saturating<unsigned short>(std::nearbyint(float(v)));
}
inline long long __half2ll_rn(__half v) { return __float2ll_rn(v); }

inline short __half_as_short(__half v) { return static_cast<short>(v.__x); }
inline unsigned short __half_as_ushort(__half v) { return v.__x; }
inline __half __short_as_half(short bits) { return __half::of_bits(static_cast<unsigned short>(bits)); }
inline __half __ushort_as_half(unsigned short bits) { return __half::of_bits(bits); }

inline __half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
inline __half2 __float2half2_rn(float v) { return __half2(__float2half(v)); }
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half2 __half2half2(__half v) { return __half2(v); }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return __half2(v.x); }
inline __half2 __high2half2(__half2 v) { return __half2(v.y); }
inline __half2 __lows2half2(__half2 v, __half2 w) { return {v.x, w.x}; }
inline __half2 __highs2half2(__half2 v, __half2 w) { return {v.y, w.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
