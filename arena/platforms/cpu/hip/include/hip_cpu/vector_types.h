// float2, int4, dim3 and their kin: the layouts of HIP, trivially constructible, with its component-wise operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hip_cpu {

template <class V> struct IsVector : std::false_type {};

}  // namespace hip_cpu

#define HIP_CPU_VECTOR(T, name, alignment)                                                       \
    struct alignas(alignment * sizeof(T) < 16 ? alignment * sizeof(T) : 16) name##2 {            \
        using Component = T;                                                                     \
        T x, y;                                                                                  \
        name##2() = default;                                                                     \
        constexpr name##2(T a, T b) : x(a), y(b) {}                                              \
        explicit constexpr name##2(T a) : x(a), y(a) {}                                          \
        template <class F> constexpr name##2 map(const name##2& o, F f) const {                  \
            return {f(x, o.x), f(y, o.y)};                                                       \
        }                                                                                        \
        constexpr bool operator==(const name##2& o) const { return x == o.x && y == o.y; }       \
        constexpr bool operator!=(const name##2& o) const { return !(*this == o); }              \
    };                                                                                           \
    struct name##3 {                                                                             \
        using Component = T;                                                                     \
        T x, y, z;                                                                               \
        name##3() = default;                                                                     \
        constexpr name##3(T a, T b, T c) : x(a), y(b), z(c) {}                                   \
        explicit constexpr name##3(T a) : x(a), y(a), z(a) {}                                    \
        template <class F> constexpr name##3 map(const name##3& o, F f) const {                  \
            return {f(x, o.x), f(y, o.y), f(z, o.z)};                                            \
        }                                                                                        \
        constexpr bool operator==(const name##3& o) const {                                      \
            return x == o.x && y == o.y && z == o.z;                                             \
        }                                                                                        \
        constexpr bool operator!=(const name##3& o) const { return !(*this == o); }              \
    };                                                                                           \
    struct alignas(2 * alignment * sizeof(T) < 16 ? 2 * alignment * sizeof(T) : 16) name##4 {    \
        using Component = T;                                                                     \
        T x, y, z, w;                                                                            \
        name##4() = default;                                                                     \
        constexpr name##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}                        \
        explicit constexpr name##4(T a) : x(a), y(a), z(a), w(a) {}                              \
        template <class F> constexpr name##4 map(const name##4& o, F f) const {                  \
            return {f(x, o.x), f(y, o.y), f(z, o.z), f(w, o.w)};                                 \
        }                                                                                        \
        constexpr bool operator==(const name##4& o) const {                                      \
            return x == o.x && y == o.y && z == o.z && w == o.w;                                 \
        }                                                                                        \
        constexpr bool operator!=(const name##4& o) const { return !(*this == o); }              \
    };                                                                                           \
    struct name##1 {                                                                             \
        T x;                                                                                     \
    };                                                                                           \
    constexpr name##1 make_##name##1(T x) { return {x}; }                                        \
    constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                \
    constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                        \
    constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }                \
    namespace hip_cpu {                                                                          \
    template <> struct IsVector<name##2> : std::true_type {};                                    \
    template <> struct IsVector<name##3> : std::true_type {};                                    \
    template <> struct IsVector<name##4> : std::true_type {};                                    \
    }

HIP_CPU_VECTOR(char, char, 2)
HIP_CPU_VECTOR(unsigned char, uchar, 2)
HIP_CPU_VECTOR(short, short, 2)
HIP_CPU_VECTOR(unsigned short, ushort, 2)
HIP_CPU_VECTOR(int, int, 2)
HIP_CPU_VECTOR(unsigned int, uint, 2)
HIP_CPU_VECTOR(long, long, 2)
HIP_CPU_VECTOR(unsigned long, ulong, 2)
HIP_CPU_VECTOR(long long, longlong, 2)
HIP_CPU_VECTOR(unsigned long long, ulonglong, 2)
HIP_CPU_VECTOR(float, float, 2)
HIP_CPU_VECTOR(double, double, 2)
#undef HIP_CPU_VECTOR

#define HIP_CPU_OPERATOR(op)                                                                            \
    template <class V, std::enable_if_t<hip_cpu::IsVector<V>::value, int> = 0>                          \
    constexpr V operator op(const V& a, const V& b) {                                                   \
        using T = typename V::Component;                                                                \
        return a.map(b, [](T x, T y) { return static_cast<T>(x op y); });                               \
    }                                                                                                   \
    template <class V, std::enable_if_t<hip_cpu::IsVector<V>::value, int> = 0>                          \
    constexpr V operator op(const V& a, typename V::Component b) {                                      \
        return a op V(b);                                                                               \
    }                                                                                                   \
    template <class V, std::enable_if_t<hip_cpu::IsVector<V>::value, int> = 0>                          \
    constexpr V operator op(typename V::Component a, const V& b) {                                      \
        return V(a) op b;                                                                               \
    }                                                                                                   \
    template <class V, class B, std::enable_if_t<hip_cpu::IsVector<V>::value, int> = 0>                 \
    constexpr V& operator op##=(V& a, const B& b) {                                                     \
        return a = a op b;                                                                              \
    }
HIP_CPU_OPERATOR(+)
HIP_CPU_OPERATOR(-)
HIP_CPU_OPERATOR(*)
HIP_CPU_OPERATOR(/)
#undef HIP_CPU_OPERATOR

template <class V, std::enable_if_t<hip_cpu::IsVector<V>::value, int> = 0> constexpr V operator-(const V& a) {
    return V(typename V::Component(0)) - a;
}

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(const uint3& v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
