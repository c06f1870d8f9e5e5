// Math functions that a GPU has beyond <cmath>. The "fast" intrinsics are the accurate functions here.
#pragma once

#include <cmath>
#include <type_traits>

#include "hip_cpu/intrinsics.h"

// min and max take mixed operands, as HIP's overloads do; a NaN operand gives the other one.
template <class A, class B,
          std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, int> = 0>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point<C>::value) return std::fmin(static_cast<C>(a), static_cast<C>(b));
    return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B,
          std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, int> = 0>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point<C>::value) return std::fmax(static_cast<C>(a), static_cast<C>(b));
    return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}

// float and double overloads of the C names, as in device code, where `exp(1.0f)` is a float.
using std::abs;
using std::cbrt;
using std::ceil;
using std::cos;
using std::erf;
using std::exp;
using std::exp2;
using std::expm1;
using std::floor;
using std::fma;
using std::fmax;
using std::fmin;
using std::fmod;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::rint;
using std::round;
using std::signbit;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return static_cast<float>(1.0 / std::cbrt(static_cast<double>(x))); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline float fdividef(float a, float b) { return a / b; }
inline float fdivide(float a, float b) { return a / b; }
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * std::fmod(x, 2.0)); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * std::fmod(x, 2.0)); }
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline float rhypotf(float a, float b) { return static_cast<float>(1.0 / std::hypot(double(a), double(b))); }
inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }
inline float norm4df(float a, float b, float c, float d) { return std::hypot(std::hypot(a, b), std::hypot(c, d)); }

inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return ::exp10f(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline void __sincosf(float x, float* s, float* c) { ::sincosf(x, s, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // a NaN gives 0
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

// Rounding to nearest even is what the machine does; the others are not provided.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

namespace hip_cpu {
// Float to integer as a GPU does it: out of range saturates and NaN gives 0, where C++ leaves both undefined.
template <class I, class F> inline I saturating(F x) {
    constexpr I lowest = std::is_signed<I>::value ? I(I(1) << (sizeof(I) * 8 - 1)) : I(0);
    constexpr I highest = static_cast<I>(~lowest);
    if (x != x) return 0;
    if (x <= static_cast<F>(lowest)) return lowest;
    return x >= static_cast<F>(highest) ? highest : static_cast<I>(x);
}
}  // namespace hip_cpu

#define HIP_CPU_TO_INTEGER(prefix, F)                                                                          \
    inline int prefix##2int_rn(F x) { return hip_cpu::saturating<int>(std::nearbyint(x)); }                    \
    inline int prefix##2int_rz(F x) { return hip_cpu::saturating<int>(x); }                                    \
    inline int prefix##2int_rd(F x) { return hip_cpu::saturating<int>(std::floor(x)); }                        \
    inline int prefix##2int_ru(F x) { return hip_cpu::saturating<int>(std::ceil(x)); }                         \
    inline unsigned prefix##2uint_rn(F x) { return hip_cpu::saturating<unsigned>(std::nearbyint(x)); }         \
    inline unsigned prefix##2uint_rz(F x) { return hip_cpu::saturating<unsigned>(x); }                         \
    inline long long prefix##2ll_rn(F x) { return hip_cpu::saturating<long long>(std::nearbyint(x)); }         \
    inline long long prefix##2ll_rz(F x) { return hip_cpu::saturating<long long>(x); }
HIP_CPU_TO_INTEGER(__float, float)
HIP_CPU_TO_INTEGER(__double, double)
#undef HIP_CPU_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
