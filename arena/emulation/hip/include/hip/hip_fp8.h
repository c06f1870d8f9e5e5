// OCP 8-bit floats: __hip_fp8_e4m3 (no infinity, one NaN) and __hip_fp8_e5m2, saturating by default as in HIP.
#pragma once

#include "hip/hip_bf16.h"
#include "hip/hip_fp16.h"

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1 };

namespace hip_cpu {

inline unsigned char encode_e5m2(double value, __hip_saturation_t saturation) {
    unsigned bits = encode<5, 2>(value);
    if ((bits & 0x7f) == 0x7c && saturation == __HIP_SATFINITE) bits -= 1;
    return static_cast<unsigned char>(bits);
}

// e4m3 has no infinity: its top exponent holds numbers up to 448, and only all ones is NaN.
inline unsigned char encode_e4m3(double value, __hip_saturation_t saturation) {
    const unsigned sign = std::signbit(value) ? 0x80 : 0;
    const double size = std::fabs(value);
    if (value != value) return static_cast<unsigned char>(sign | 0x7f);
    if (size > 464) return static_cast<unsigned char>(sign | (saturation == __HIP_SATFINITE ? 0x7e : 0x7f));
    if (size < 240) return static_cast<unsigned char>(sign | encode<4, 3>(size));
    const int steps = static_cast<int>(std::nearbyint(size < 256 ? size / 16 : size / 32));
    const unsigned bits = size < 256 ? 0x70 + steps - 8 : 0x78 + steps - 8;
    return static_cast<unsigned char>(sign | bits);
}

}  // namespace hip_cpu

inline __hip_fp8_storage_t __hip_cvt_double_to_fp8(double value, __hip_saturation_t saturation,
                                                   __hip_fp8_interpretation_t format) {
    return format == __HIP_E4M3 ? hip_cpu::encode_e4m3(value, saturation) : hip_cpu::encode_e5m2(value, saturation);
}
inline __hip_fp8_storage_t __hip_cvt_float_to_fp8(float value, __hip_saturation_t saturation,
                                                  __hip_fp8_interpretation_t format) {
    return __hip_cvt_double_to_fp8(value, saturation, format);
}
inline __hip_fp8_storage_t __hip_cvt_halfraw_to_fp8(__half_raw value, __hip_saturation_t saturation,
                                                    __hip_fp8_interpretation_t format) {
    return __hip_cvt_double_to_fp8(float(__half(value)), saturation, format);
}
inline __hip_fp8_storage_t __hip_cvt_bfloat16raw_to_fp8(__hip_bfloat16_raw value, __hip_saturation_t saturation,
                                                        __hip_fp8_interpretation_t format) {
    return __hip_cvt_double_to_fp8(float(__hip_bfloat16(value)), saturation, format);
}
inline __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(float2 value, __hip_saturation_t saturation,
                                                       __hip_fp8_interpretation_t format) {
    const unsigned low = __hip_cvt_float_to_fp8(value.x, saturation, format);
    return static_cast<__hip_fp8x2_storage_t>(low | __hip_cvt_float_to_fp8(value.y, saturation, format) << 8);
}
inline __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t bits, __hip_fp8_interpretation_t format) {
    return __half::narrow(format == __HIP_E4M3 ? hip_cpu::decode_e4m3(bits) : hip_cpu::decode<5, 2>(bits));
}

#define HIP_CPU_FP8(F, encoder, decoder)                                                                \
    struct F {                                                                                          \
        __hip_fp8_storage_t __x;                                                                        \
        F() = default;                                                                                  \
        template <class N, std::enable_if_t<std::is_arithmetic<N>::value, int> = 0>                     \
        explicit F(N value) : __x(encoder(static_cast<double>(value), __HIP_SATFINITE)) {}              \
        explicit F(__half value) : __x(encoder(float(value), __HIP_SATFINITE)) {}                       \
        explicit F(__hip_bfloat16 value) : __x(encoder(float(value), __HIP_SATFINITE)) {}               \
        explicit operator float() const { return decoder(__x); }                                        \
        explicit operator double() const { return decoder(__x); }                                       \
        explicit operator __half() const { return __half::narrow(decoder(__x)); }                       \
        explicit operator __hip_bfloat16() const { return __hip_bfloat16::narrow(decoder(__x)); }       \
    };
HIP_CPU_FP8(__hip_fp8_e4m3, hip_cpu::encode_e4m3, hip_cpu::decode_e4m3)
HIP_CPU_FP8(__hip_fp8_e5m2, hip_cpu::encode_e5m2, (hip_cpu::decode<5, 2>))
#undef HIP_CPU_FP8
