// __hip_bfloat16 and __hip_bfloat162: arithmetic, comparisons, conversions; correctly rounded to nearest even.
#pragma once

#include "hip/hip_runtime.h"
#include "hip_cpu/small_float.h"

struct __hip_bfloat16_raw {
    unsigned short x;
};
struct __hip_bfloat16 {
    HIP_CPU_FLOAT16_MEMBERS(__hip_bfloat16, __hip_bfloat16_raw, 8, 7)
};
struct __hip_bfloat162_raw {
    unsigned short x, y;
};
struct alignas(4) __hip_bfloat162 {
    __hip_bfloat16 x, y;
    __hip_bfloat162() = default;
    __hip_bfloat162(__hip_bfloat16 low, __hip_bfloat16 high) : x(low), y(high) {}
    explicit __hip_bfloat162(__hip_bfloat16 both) : x(both), y(both) {}
    __hip_bfloat162(const __hip_bfloat162_raw& raw)
        : x(__hip_bfloat16::of_bits(raw.x)), y(__hip_bfloat16::of_bits(raw.y)) {}
    operator __hip_bfloat162_raw() const { return {x.__x, y.__x}; }
};

HIP_CPU_SMALL_FLOAT(__hip_bfloat16, __hip_bfloat162)

inline __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }

inline float __bfloat162float(__hip_bfloat16 v) { return v; }
inline __hip_bfloat16 __float2bfloat16(float v) { return __hip_bfloat16::narrow(v); }
inline __hip_bfloat16 __float2bfloat16_rn(float v) { return __hip_bfloat16::narrow(v); }
inline __hip_bfloat16 __float2bfloat16_rz(float v) {
    if (v != v) return __hip_bfloat16::narrow(v);
    return __hip_bfloat16::of_bits(static_cast<unsigned short>(__float_as_uint(v) >> 16));
}
inline __hip_bfloat16 __double2bfloat16(double v) { return __hip_bfloat16::narrow(v); }

inline __hip_bfloat16 __int2bfloat16_rn(int v) { return v; }
inline __hip_bfloat16 __uint2bfloat16_rn(unsigned v) { return v; }
inline __hip_bfloat16 __short2bfloat16_rn(short v) { return v; }
inline __hip_bfloat16 __ushort2bfloat16_rn(unsigned short v) { return v; }
inline __hip_bfloat16 __ll2bfloat16_rn(long long v) { return v; }
inline int __bfloat162int_rn(__hip_bfloat16 v) { return __float2int_rn(v); }
inline int __bfloat162int_rz(__hip_bfloat16 v) { return __float2int_rz(v); }
inline unsigned __bfloat162uint_rn(__hip_bfloat16 v) { return __float2uint_rn(v); }
inline unsigned __bfloat162uint_rz(__hip_bfloat16 v) { return __float2uint_rz(v); }

inline short __bfloat16_as_short(__hip_bfloat16 v) { return static_cast<short>(v.__x); }
inline unsigned short __bfloat16_as_ushort(__hip_bfloat16 v) { return v.__x; }
inline __hip_bfloat16 __short_as_bfloat16(short bits) {
    return __hip_bfloat16::of_bits(static_cast<unsigned short>(bits));
}
inline __hip_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __hip_bfloat16::of_bits(bits); }

inline __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
inline __hip_bfloat162 __float2bfloat162_rn(float v) { return __hip_bfloat162(__float2bfloat16(v)); }
inline __hip_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
inline float2 __bfloat1622float2(__hip_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 v) { return __hip_bfloat162(v); }
inline __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
inline __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
inline __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
inline float __low2float(__hip_bfloat162 v) { return v.x; }
inline float __high2float(__hip_bfloat162 v) { return v.y; }
inline __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return __hip_bfloat162(v.x); }
inline __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return __hip_bfloat162(v.y); }
inline __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 v) { return {v.y, v.x}; }
