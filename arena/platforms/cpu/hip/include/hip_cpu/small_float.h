// Floats of 16 and 8 bits: their encoding, correctly rounded to nearest even, and the operations they share.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "hip_cpu/intrinsics.h"
#include "hip_cpu/math.h"

namespace hip_cpu {

// The bits of `value` in a format of `E` exponent and `M` mantissa bits. float and double are exact in a double,
// so there is one rounding only.
template <int E, int M> inline unsigned encode(double value) {
    constexpr int bias = (1 << (E - 1)) - 1, all_ones = (1 << E) - 1;
    const std::uint64_t bits = bit_cast<std::uint64_t>(value);
    const unsigned sign = static_cast<unsigned>(bits >> 63) << (E + M);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    std::uint64_t mantissa = bits & ((1ull << 52) - 1);
    if (exponent == 0x7ff) return sign | all_ones << M | (mantissa ? 1u << (M - 1) : 0u);
    int biased = exponent - 1023 + bias, shift = 52 - M;
    if (biased >= all_ones) return sign | all_ones << M;
    if (biased <= 0) {
        shift += 1 - biased;
        if (shift > 53) return sign;
        mantissa |= 1ull << 52;
        biased = 0;
    }
    const std::uint64_t rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    std::uint64_t kept = mantissa >> shift;
    kept += rest > half || (rest == half && (kept & 1));
    return sign | (static_cast<unsigned>(biased << M) + static_cast<unsigned>(kept));
}

template <int E, int M> inline float decode(unsigned bits) {
    if (E == 8) return __uint_as_float(bits << (23 - M));  // bfloat16 is the upper half of a float
    constexpr int bias = (1 << (E - 1)) - 1, all_ones = (1 << E) - 1;
    const unsigned sign = bits >> (E + M) << 31, exponent = bits >> M & all_ones, mantissa = bits & ((1u << M) - 1);
    if (exponent == static_cast<unsigned>(all_ones)) return __uint_as_float(sign | 0x7f800000u | mantissa << (23 - M));
    if (exponent) return __uint_as_float(sign | (exponent + 127 - bias) << 23 | mantissa << (23 - M));
    const float tiny = __uint_as_float(static_cast<unsigned>(127 + 1 - bias - M) << 23);  // the smallest subnormal
    return __uint_as_float(sign | __float_as_uint(static_cast<float>(mantissa) * tiny));
}

// OCP's 8 bits: the top exponent holds numbers too, and only all ones is NaN.
inline float decode_e4m3(unsigned char bits) {
    const unsigned rest = bits & 0x7f;
    if (rest == 0x7f) return NAN;
    const float size = rest >= 0x78 ? 256.0f + 32.0f * static_cast<float>(rest - 0x78) : decode<4, 3>(rest);
    return bits & 0x80 ? -size : size;
}

// The 8 bits of gfx942: half of what they would be in OCP's, the top code too; NaN is what would be -0.
inline float decode_e4m3_fnuz(unsigned char bits) {
    if (bits == 0x80) return NAN;
    const float size = (bits & 0x7f) == 0x7f ? 240.0f : decode_e4m3(bits & 0x7f) / 2;
    return bits & 0x80 ? -size : size;
}

// a * b + c in a double, rounded to odd, so that rounding it once more to a small format is correct.
inline double fma_to_odd(float a, float b, float c) {
    const double product = static_cast<double>(a) * b, addend = c, sum = product + addend;
    if (!std::isfinite(sum)) return sum;
    const double part = sum - product, error = (product - (sum - part)) + (addend - part);
    std::uint64_t bits = bit_cast<std::uint64_t>(sum);
    if (error == 0 || (bits & 1)) return sum;
    bits += (error > 0) == (sum > 0) ? 1 : -1;
    return bit_cast<double>(bits);
}

inline float nan_or_min(float a, float b) { return a != a || b != b ? NAN : std::fmin(a, b); }
inline float nan_or_max(float a, float b) { return a != a || b != b ? NAN : std::fmax(a, b); }

}  // namespace hip_cpu

// What __half and __hip_bfloat16 have in common. F1 and F2 are the scalar and its pair; `narrow(x)` rounds a float
// or double to F1. Sums, products, quotients and roots in float, rounded again, are correctly rounded.
#define HIP_CPU_SCALAR1(F1, name, expression) \
    inline F1 name(F1 v) {                    \
        const float a = v;                    \
        return F1::narrow(expression);        \
    }
#define HIP_CPU_SCALAR2(F1, name, expression) \
    inline F1 name(F1 v, F1 w) {              \
        const float a = v, b = w;             \
        return F1::narrow(expression);        \
    }
#define HIP_CPU_TEST(F1, F2, name, op)                                                                              \
    inline bool __h##name(F1 v, F1 w) { return float(v) op float(w); }                                              \
    inline F2 __h##name##2(F2 v, F2 w) {                                                                            \
        return F2(F1::narrow(float(__h##name(v.x, w.x))), F1::narrow(float(__h##name(v.y, w.y))));                  \
    }                                                                                                               \
    inline bool __hb##name##2(F2 v, F2 w) { return __h##name(v.x, w.x) && __h##name(v.y, w.y); }                    \
    inline bool operator op(F1 v, F1 w) { return float(v) op float(w); }
#define HIP_CPU_PAIRWISE1(F2, name, scalar) \
    inline F2 name(F2 v) { return F2(scalar(v.x), scalar(v.y)); }
#define HIP_CPU_PAIRWISE2(F2, name, scalar) \
    inline F2 name(F2 v, F2 w) { return F2(scalar(v.x, w.x), scalar(v.y, w.y)); }
#define HIP_CPU_OPERATOR(F, op, named)                              \
    inline F operator op(F v, F w) { return named(v, w); }          \
    inline F& operator op##=(F & v, F w) { return v = named(v, w); }

#define HIP_CPU_SMALL_FLOAT(F1, F2)                                                                        \
    HIP_CPU_SCALAR2(F1, __hadd, a + b)                                                                     \
    HIP_CPU_SCALAR2(F1, __hsub, a - b)                                                                     \
    HIP_CPU_SCALAR2(F1, __hmul, a * b)                                                                     \
    HIP_CPU_SCALAR2(F1, __hdiv, a / b)                                                                     \
    HIP_CPU_SCALAR2(F1, __hadd_rn, a + b)                                                                  \
    HIP_CPU_SCALAR2(F1, __hsub_rn, a - b)                                                                  \
    HIP_CPU_SCALAR2(F1, __hmul_rn, a * b)                                                                  \
    HIP_CPU_SCALAR2(F1, __hadd_sat, __saturatef(F1::narrow(a + b)))                                        \
    HIP_CPU_SCALAR2(F1, __hmul_sat, __saturatef(F1::narrow(a * b)))                                        \
    HIP_CPU_SCALAR2(F1, __hmin, std::fmin(a, b))                                                           \
    HIP_CPU_SCALAR2(F1, __hmax, std::fmax(a, b))                                                           \
    HIP_CPU_SCALAR2(F1, __hmin_nan, hip_cpu::nan_or_min(a, b))                                             \
    HIP_CPU_SCALAR2(F1, __hmax_nan, hip_cpu::nan_or_max(a, b))                                             \
    HIP_CPU_SCALAR1(F1, __hneg, -a)                                                                        \
    HIP_CPU_SCALAR1(F1, __habs, std::fabs(a))                                                              \
    HIP_CPU_SCALAR1(F1, hexp, std::exp(a))                                                                 \
    HIP_CPU_SCALAR1(F1, hexp2, std::exp2(a))                                                               \
    HIP_CPU_SCALAR1(F1, hexp10, ::exp10f(a))                                                               \
    HIP_CPU_SCALAR1(F1, hlog, std::log(a))                                                                 \
    HIP_CPU_SCALAR1(F1, hlog2, std::log2(a))                                                               \
    HIP_CPU_SCALAR1(F1, hlog10, std::log10(a))                                                             \
    HIP_CPU_SCALAR1(F1, hsqrt, std::sqrt(a))                                                               \
    HIP_CPU_SCALAR1(F1, hrsqrt, rsqrtf(a))                                                                 \
    HIP_CPU_SCALAR1(F1, hrcp, 1.0f / a)                                                                    \
    HIP_CPU_SCALAR1(F1, hsin, std::sin(a))                                                                 \
    HIP_CPU_SCALAR1(F1, hcos, std::cos(a))                                                                 \
    HIP_CPU_SCALAR1(F1, htanh, std::tanh(a))                                                               \
    HIP_CPU_SCALAR1(F1, hfloor, std::floor(a))                                                             \
    HIP_CPU_SCALAR1(F1, hceil, std::ceil(a))                                                               \
    HIP_CPU_SCALAR1(F1, htrunc, std::trunc(a))                                                             \
    HIP_CPU_SCALAR1(F1, hrint, std::nearbyint(a))                                                          \
    inline F1 __hfma(F1 a, F1 b, F1 c) { return F1::narrow(hip_cpu::fma_to_odd(a, b, c)); }                \
    inline F1 __hfma_sat(F1 a, F1 b, F1 c) { return F1::narrow(__saturatef(float(__hfma(a, b, c)))); }     \
    inline F1 __hfma_relu(F1 a, F1 b, F1 c) { return __hmax(__hfma(a, b, c), F1::narrow(0.0f)); }          \
    inline bool __hisnan(F1 v) { return std::isnan(float(v)); }                                            \
    inline int __hisinf(F1 v) { return std::isinf(float(v)) ? (float(v) > 0 ? 1 : -1) : 0; }               \
    HIP_CPU_TEST(F1, F2, eq, ==)                                                                           \
    HIP_CPU_TEST(F1, F2, ne, !=)                                                                           \
    HIP_CPU_TEST(F1, F2, lt, <)                                                                            \
    HIP_CPU_TEST(F1, F2, le, <=)                                                                           \
    HIP_CPU_TEST(F1, F2, gt, >)                                                                            \
    HIP_CPU_TEST(F1, F2, ge, >=)                                                                           \
    HIP_CPU_PAIRWISE2(F2, __hadd2, __hadd)                                                                 \
    HIP_CPU_PAIRWISE2(F2, __hsub2, __hsub)                                                                 \
    HIP_CPU_PAIRWISE2(F2, __hmul2, __hmul)                                                                 \
    HIP_CPU_PAIRWISE2(F2, __h2div, __hdiv)                                                                 \
    HIP_CPU_PAIRWISE2(F2, __hmin2, __hmin)                                                                 \
    HIP_CPU_PAIRWISE2(F2, __hmax2, __hmax)                                                                 \
    HIP_CPU_PAIRWISE1(F2, __hneg2, __hneg)                                                                 \
    HIP_CPU_PAIRWISE1(F2, __habs2, __habs)                                                                 \
    HIP_CPU_PAIRWISE1(F2, h2exp, hexp)                                                                     \
    HIP_CPU_PAIRWISE1(F2, h2exp2, hexp2)                                                                   \
    HIP_CPU_PAIRWISE1(F2, h2log, hlog)                                                                     \
    HIP_CPU_PAIRWISE1(F2, h2log2, hlog2)                                                                   \
    HIP_CPU_PAIRWISE1(F2, h2sqrt, hsqrt)                                                                   \
    HIP_CPU_PAIRWISE1(F2, h2rsqrt, hrsqrt)                                                                 \
    HIP_CPU_PAIRWISE1(F2, h2rcp, hrcp)                                                                     \
    HIP_CPU_PAIRWISE1(F2, h2sin, hsin)                                                                     \
    HIP_CPU_PAIRWISE1(F2, h2cos, hcos)                                                                     \
    HIP_CPU_PAIRWISE1(F2, h2floor, hfloor)                                                                 \
    HIP_CPU_PAIRWISE1(F2, h2ceil, hceil)                                                                   \
    HIP_CPU_PAIRWISE1(F2, h2trunc, htrunc)                                                                 \
    HIP_CPU_PAIRWISE1(F2, h2rint, hrint)                                                                   \
    inline F2 __hfma2(F2 a, F2 b, F2 c) { return F2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }       \
    HIP_CPU_OPERATOR(F1, +, __hadd)                                                                        \
    HIP_CPU_OPERATOR(F1, -, __hsub)                                                                        \
    HIP_CPU_OPERATOR(F1, *, __hmul)                                                                        \
    HIP_CPU_OPERATOR(F1, /, __hdiv)                                                                        \
    HIP_CPU_OPERATOR(F2, +, __hadd2)                                                                       \
    HIP_CPU_OPERATOR(F2, -, __hsub2)                                                                       \
    HIP_CPU_OPERATOR(F2, *, __hmul2)                                                                       \
    HIP_CPU_OPERATOR(F2, /, __h2div)                                                                       \
    inline F1 operator-(F1 v) { return __hneg(v); }                                                        \
    inline F1 operator+(F1 v) { return v; }                                                                \
    inline F2 operator-(F2 v) { return __hneg2(v); }                                                       \
    inline bool operator==(F2 v, F2 w) { return v.x == w.x && v.y == w.y; }                                \
    inline bool operator!=(F2 v, F2 w) { return !(v == w); }

// The members of a 16-bit float of E exponent and M mantissa bits. It converts from numbers, and to float.
#define HIP_CPU_FLOAT16_MEMBERS(F1, Raw, E, M)                                                            \
    unsigned short __x;                                                                                   \
    F1() = default;                                                                                       \
    F1(const Raw& raw) : __x(raw.x) {}                                                                    \
    template <class N, std::enable_if_t<std::is_arithmetic<N>::value, int> = 0> F1(N n) {                 \
        if constexpr (std::is_integral<N>::value) {                                                       \
            *this = narrow(hip_cpu::integer_to_odd(n));                                                   \
        } else {                                                                                          \
            *this = narrow(static_cast<double>(n));                                                       \
        }                                                                                                 \
    }                                                                                                     \
    operator float() const { return hip_cpu::decode<E, M>(__x); }                                         \
    operator Raw() const { return Raw{__x}; }                                                             \
    static F1 of_bits(unsigned short bits) {                                                              \
        F1 value;                                                                                         \
        value.__x = bits;                                                                                 \
        return value;                                                                                     \
    }                                                                                                     \
    static F1 narrow(double value) { return of_bits(static_cast<unsigned short>(hip_cpu::encode<E, M>(value))); }

namespace hip_cpu {
// An integer as a double, rounded to odd where it has more than 53 bits.
template <class N> inline double integer_to_odd(N n) {
    if constexpr (sizeof(N) < 8) return static_cast<double>(n);
    const bool negative = n < 0;
    std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
    int shift = 0;
    while (size >> 53) {
        size = size >> 1 | (size & 1);
        ++shift;
    }
    const double value = std::ldexp(static_cast<double>(size), shift);
    return negative ? -value : value;
}
}  // namespace hip_cpu
