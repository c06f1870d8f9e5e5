// 8-bit floats, saturating by default as in HIP: OCP's __hip_fp8_e4m3 (no infinity, one NaN) and __hip_fp8_e5m2, and
// __hip_fp8_e4m3_fnuz, which gfx942 multiplies (no infinity, no -0, up to 240).
#pragma once

#include "hip/hip_bf16.h"
#include "hip/hip_fp16.h"

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1, __HIP_E4M3_FNUZ = 2 };

namespace hip_cpu {

inline unsigned char encode_e5m2(double value, __hip_saturation_t saturation) {
    unsigned bits = encode<5, 2>(value);
    if ((bits & 0x7f) == 0x7c && saturation == __HIP_SATFINITE) bits -= 1;
    return static_cast<unsigned char>(bits);
}

// With bias 7, and numbers in the top exponent too; sizes below 496.
inline unsigned encode_to_480(double size) {
    if (size < 240) return encode<4, 3>(size);
    const int steps = static_cast<int>(std::nearbyint(size < 256 ? size / 16 : size / 32));
    return size < 256 ? 0x70 + steps - 8 : 0x78 + steps - 8;
}

// e4m3 has no infinity: its top exponent holds numbers up to 448, and only all ones is NaN.
inline unsigned char encode_e4m3(double value, __hip_saturation_t saturation) {
    const unsigned sign = std::signbit(value) ? 0x80 : 0;
    const double size = std::fabs(value);
    if (value != value) return static_cast<unsigned char>(sign | 0x7f);
    if (size > 464) return static_cast<unsigned char>(sign | (saturation == __HIP_SATFINITE ? 0x7e : 0x7f));
    return static_cast<unsigned char>(sign | encode_to_480(size));
}

inline unsigned char encode_e4m3_fnuz(double value, __hip_saturation_t saturation) {
    const double size = std::fabs(value);
    if (value != value) return 0x80;
    if (size >= 248) {
        if (saturation == __HIP_NOSAT) return 0x80;
        return std::signbit(value) ? 0xff : 0x7f;
    }
    const unsigned bits = encode_to_480(2 * size);
    return static_cast<unsigned char>(bits && std::signbit(value) ? 0x80 | bits : bits);
}

inline unsigned char encode_fp8(double value, __hip_saturation_t saturation, __hip_fp8_interpretation_t format) {
    if (format == __HIP_E4M3_FNUZ) return encode_e4m3_fnuz(value, saturation);
    return format == __HIP_E4M3 ? encode_e4m3(value, saturation) : encode_e5m2(value, saturation);
}
inline float decode_fp8(unsigned char bits, __hip_fp8_interpretation_t format) {
    if (format == __HIP_E4M3_FNUZ) return decode_e4m3_fnuz(bits);
    return format == __HIP_E4M3 ? decode_e4m3(bits) : decode<5, 2>(bits);
}

}  // namespace hip_cpu

inline __hip_fp8_storage_t __hip_cvt_double_to_fp8(double value, __hip_saturation_t saturation,
                                                   __hip_fp8_interpretation_t format) {
    return hip_cpu::encode_fp8(value, saturation, format);
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
    return __half::narrow(hip_cpu::decode_fp8(bits, format));
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
HIP_CPU_FP8(__hip_fp8_e4m3_fnuz, hip_cpu::encode_e4m3_fnuz, hip_cpu::decode_e4m3_fnuz)
HIP_CPU_FP8(__hip_fp8_e5m2, hip_cpu::encode_e5m2, (hip_cpu::decode<5, 2>))
#undef HIP_CPU_FP8
