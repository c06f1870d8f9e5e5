// AMD's matrix operations as builtins: MFMA for waves of 64 lanes, WMMA for waves of 32.
//
// Layouts: AMD's matrix instruction calculator, which follows the CDNA3, RDNA3 and RDNA4 ISA guides. A product is summed
// in double, in the order of k, and rounded once; hardware rounds in an order of its own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hip_cpu/small_float.h"
#include "hip_cpu/wave.h"

// Where the compiler has no such type, clang's name stands for HIP's, which a source then has to include.
#ifndef __clang__
#define _Float16 __half
#endif

#pragma GCC visibility push(hidden)
namespace hip_cpu {

// What `ext_vector_type(N)` is to clang: the rewriter puts this in its place.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
    T element[N];
    T& operator[](int i) { return element[i]; }
    const T& operator[](int i) const { return element[i]; }
};
#define HIP_CPU_VECTOR_OPERATOR(op)                                                        \
    template <class T, int N> Vector<T, N>& operator op##=(Vector<T, N>& v, Vector<T, N> w) { \
        for (int i = 0; i < N; ++i) v[i] = static_cast<T>(v[i] op w[i]);                   \
        return v;                                                                          \
    }                                                                                      \
    template <class T, int N> Vector<T, N>& operator op##=(Vector<T, N>& v, T w) {         \
        for (int i = 0; i < N; ++i) v[i] = static_cast<T>(v[i] op w);                      \
        return v;                                                                          \
    }                                                                                      \
    template <class T, int N, class W> Vector<T, N> operator op(Vector<T, N> v, W w) { return v op##= w; }
HIP_CPU_VECTOR_OPERATOR(+)
HIP_CPU_VECTOR_OPERATOR(-)
HIP_CPU_VECTOR_OPERATOR(*)
HIP_CPU_VECTOR_OPERATOR(/)
#undef HIP_CPU_VECTOR_OPERATOR

// How the operands of an operation lie in memory: the type of an element, and its value.
struct Float32 {
    using Bits = float;
    static double value(Bits bits) { return bits; }
};
struct Float16 {
    using Bits = std::uint16_t;
    static double value(Bits bits) { return decode<5, 10>(bits); }
};
struct Brain16 {
    using Bits = std::uint16_t;
    static double value(Bits bits) { return decode<8, 7>(bits); }
};
struct E4m3 {  // OCP, as on gfx950 and gfx1201; gfx942 has another format
    using Bits = std::uint8_t;
    static double value(Bits bits) { return decode_e4m3(bits); }
};
struct E5m2 {
    using Bits = std::uint8_t;
    static double value(Bits bits) { return decode<5, 2>(bits); }
};
struct Int8 {
    using Bits = std::int8_t;
    static double value(Bits bits) { return bits; }
};

struct Place {
    int lane, item;
};

// One block of Side × Side outputs, K deep. A lane holds the same part of a row of A as of a column of B.
template <int Side_, int K_> struct Mfma {
    static constexpr int Lanes = 64, Side = Side_, K = K_, Inputs = Side * K / Lanes, Outputs = Side * Side / Lanes;
    static constexpr const char* name = "MFMA";
    static Place input(int i, int k) { return {i + Side * (k / Inputs), k % Inputs}; }
    static Place output(int i, int j) {
        constexpr int across = Lanes / Side;  // groups of four rows, side by side over the lanes
        return {j + Side * (i / 4 % across), i % 4 + 4 * (i / (4 * across))};
    }
};
struct Wmma11 {  // RDNA3: both halves of a wave hold all inputs; here each is asked for half of them
    static constexpr int Lanes = 32, Side = 16, K = 16, Inputs = 16, Outputs = 8;
    static constexpr const char* name = "WMMA";
    static Place input(int i, int k) { return {i + 16 * (k / 8), k}; }
    static Place output(int i, int j) { return {j + 16 * (i % 2), i / 2}; }
};
template <int Group> struct Wmma12 {  // RDNA4; Group: consecutive k of a lane
    static constexpr int Lanes = 32, Side = 16, K = 16, Inputs = 8, Outputs = 8;
    static constexpr const char* name = "WMMA";
    static Place input(int i, int k) { return {i + 16 * (k / Group % 2), k % Group + Group * (k / (2 * Group))}; }
    static Place output(int i, int j) { return {j + 16 * (i / 8), i % 8}; }
};

// What one lane brings to an operation, and where it finds its part of the result.
template <class Shape, class Left, class Right, class Sum> struct MatrixPart : Together {
    typename Left::Bits a[Shape::Inputs];
    typename Right::Bits b[Shape::Inputs];
    Sum c[Shape::Outputs];
};

inline void add(float& c, double sum) { c = static_cast<float>(sum + c); }
inline void add(int& c, double sum) {  // modulo 2^32, and sums of so few products are exact
    c = static_cast<int>(static_cast<unsigned>(c) + static_cast<unsigned>(static_cast<long long>(sum)));
}

// Runs once for a wave, when all its lanes have come.
template <class Shape, class Left, class Right, class Sum> void multiply_lanes(Together* const* lanes) {
    using Part = MatrixPart<Shape, Left, Right, Sum>;
    constexpr int side = Shape::Side, depth = Shape::K;
    double a[side][depth], b[depth][side];
    for (int i = 0; i < side; ++i) {
        for (int k = 0; k < depth; ++k) {
            const Place at = Shape::input(i, k);
            const Part& part = *static_cast<Part*>(lanes[at.lane]);
            a[i][k] = Left::value(part.a[at.item]);
            b[k][i] = Right::value(part.b[at.item]);
        }
    }
    for (int i = 0; i < side; ++i) {
        double sums[side] = {};
        for (int k = 0; k < depth; ++k) {
            for (int j = 0; j < side; ++j) sums[j] += a[i][k] * b[k][j];
        }
        for (int j = 0; j < side; ++j) {
            const Place at = Shape::output(i, j);
            add(static_cast<Part*>(lanes[at.lane])->c[at.item], sums[j]);
        }
    }
}

template <class Shape, class Left, class Right, class Sum, class A, class B, class C>
C matrix_operation(A a, B b, C c, unsigned line) {
    MatrixPart<Shape, Left, Right, Sum> part;
    static_assert(sizeof(A) == sizeof part.a && sizeof(B) == sizeof part.b && sizeof(C) == sizeof part.c,
                  "a matrix operation's operand has another size");
    part.run = multiply_lanes<Shape, Left, Right, Sum>;
    part.name = Shape::name;
    part.lanes = Shape::Lanes;
    std::memcpy(part.a, &a, sizeof a);
    std::memcpy(part.b, &b, sizeof b);
    std::memcpy(part.c, &c, sizeof c);
    wave_operation(WaveOp::together, line, active_lanes, reinterpret_cast<LaneMask>(static_cast<Together*>(&part)), 0);
    std::memcpy(&c, part.c, sizeof c);
    return c;
}

inline void no_matrix_modifiers(unsigned line) {
    std::fprintf(stderr, "HIP on CPU: line %u: the last three arguments of a matrix operation must be 0 here.\n", line);
    std::abort();
}

}  // namespace hip_cpu
#pragma GCC visibility pop

// The three numbers broadcast blocks and negate inputs on hardware; only zeros are provided.
#define HIP_CPU_MFMA(name, side, depth, Left, Right, Sum)                                                      \
    template <class A, class B, class C>                                                                       \
    C __builtin_amdgcn_mfma_##name(A a, B b, C c, int cbsz, int abid, int blgp, unsigned line = __builtin_LINE()) { \
        if (cbsz | abid | blgp) hip_cpu::no_matrix_modifiers(line);                                            \
        using Shape = hip_cpu::Mfma<side, depth>;                                                              \
        return hip_cpu::matrix_operation<Shape, hip_cpu::Left, hip_cpu::Right, Sum>(a, b, c, line);            \
    }
HIP_CPU_MFMA(f32_16x16x4f32, 16, 4, Float32, Float32, float)
HIP_CPU_MFMA(f32_32x32x2f32, 32, 2, Float32, Float32, float)
HIP_CPU_MFMA(f32_16x16x16f16, 16, 16, Float16, Float16, float)
HIP_CPU_MFMA(f32_32x32x8f16, 32, 8, Float16, Float16, float)
HIP_CPU_MFMA(f32_16x16x16bf16_1k, 16, 16, Brain16, Brain16, float)
HIP_CPU_MFMA(f32_32x32x8bf16_1k, 32, 8, Brain16, Brain16, float)
HIP_CPU_MFMA(f32_16x16x32_fp8_fp8, 16, 32, E4m3, E4m3, float)
HIP_CPU_MFMA(f32_16x16x32_fp8_bf8, 16, 32, E4m3, E5m2, float)
HIP_CPU_MFMA(f32_16x16x32_bf8_fp8, 16, 32, E5m2, E4m3, float)
HIP_CPU_MFMA(f32_16x16x32_bf8_bf8, 16, 32, E5m2, E5m2, float)
HIP_CPU_MFMA(f32_32x32x16_fp8_fp8, 32, 16, E4m3, E4m3, float)
HIP_CPU_MFMA(f32_32x32x16_fp8_bf8, 32, 16, E4m3, E5m2, float)
HIP_CPU_MFMA(f32_32x32x16_bf8_fp8, 32, 16, E5m2, E4m3, float)
HIP_CPU_MFMA(f32_32x32x16_bf8_bf8, 32, 16, E5m2, E5m2, float)
HIP_CPU_MFMA(i32_16x16x32_i8, 16, 32, Int8, Int8, int)
HIP_CPU_MFMA(i32_32x32x16_i8, 32, 16, Int8, Int8, int)
#undef HIP_CPU_MFMA

#define HIP_CPU_WMMA(name, Layout, Format)                                                      \
    template <class A, class B, class C>                                                        \
    C __builtin_amdgcn_wmma_##name(A a, B b, C c, unsigned line = __builtin_LINE()) {           \
        using Element = hip_cpu::Format;                                                        \
        return hip_cpu::matrix_operation<hip_cpu::Layout, Element, Element, float>(a, b, c, line); \
    }
HIP_CPU_WMMA(f32_16x16x16_f16_w32, Wmma11, Float16)
HIP_CPU_WMMA(f32_16x16x16_bf16_w32, Wmma11, Brain16)
HIP_CPU_WMMA(f32_16x16x16_f16_w32_gfx12, Wmma12<4>, Float16)
HIP_CPU_WMMA(f32_16x16x16_bf16_w32_gfx12, Wmma12<4>, Brain16)
HIP_CPU_WMMA(f32_16x16x16_fp8_fp8_w32_gfx12, Wmma12<8>, E4m3)
#undef HIP_CPU_WMMA
