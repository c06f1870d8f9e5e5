// Products of 16 × 16 tiles by a GPU's matrix units, one tile a wave: MFMA on CDNA, WMMA on RDNA 3 and 4, mma.sync on
// NVIDIA from sm_80. A candidate may include it as "matrix.h". Elements: __half, __hip_bfloat16, 8-bit floats; sums in
// float32. All lanes of a wave call each function together.
//
//     matrix::FragmentA<__half> a;
//     matrix::FragmentB<__half> b;
//     matrix::Accumulator sums;                          // zeros
//     matrix::load<matrix::row_major>(a, left, lda);     // A[i][k] at left[i * lda + k]
//     matrix::load<matrix::column_major>(b, right, ldb);  // B[k][j] at right[j * ldb + k]
//     matrix::multiply_accumulate(sums, a, b);           // sums += A × B, which is matrix::depth<__half> deep
//     matrix::for_each(sums, [&](int row, int column, float& value) { value += bias[column]; });
//     matrix::store(sums, result, ldc);                  // C[i][j] at result[i * ldc + j]
//
// Layouts: AMD's matrix instruction calculator and ISA guides; NVIDIA's PTX ISA, "Matrix fragments for mma.m16n8k16".
#ifndef ARENA_MATRIX_H
#define ARENA_MATRIX_H

#include <assert.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace matrix {

// How the lanes of a wave share a tile: kGroups lanes share a row of A (or column of B), and each of them has kStrips
// rows, 8 apart. On AMD it does not matter which k a lane's products belong to, as long as A and B agree: they lie side
// by side here, and one access loads them.
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kLanes = 32, kStrips = 2, kGroups = 4;
#elif defined(__GFX11__)
constexpr int kLanes = 32, kStrips = 1, kGroups = 1;
#elif defined(__GFX12__) || (defined(__HIP_PLATFORM_CPU__) && HIP_CPU_WAVE_SIZE == 32)
#define ARENA_MATRIX_RDNA4
constexpr int kLanes = 32, kStrips = 1, kGroups = 2;
#else  // CDNA, the CPU platform with waves of 64 lanes, and host code, which has no use for them
constexpr int kLanes = 64, kStrips = 1, kGroups = 4;
#endif
constexpr int kSize = 16;                      // rows of A and columns of B
constexpr int kRun = 16 / kGroups;             // 16-bit elements of a strip
constexpr int kSums = kSize * kSize / kLanes;  // elements of an accumulator that a lane holds

enum Layout { row_major, column_major };

template <typename E>
constexpr int depth = sizeof(E) == 1 ? 32 : 16;  // columns of A and rows of B

// Whether the unit multiplies elements of this type. 8-bit floats that it does not know are held as float16, which has
// all their values.
template <typename E>
constexpr bool multiplies = sizeof(E) == 2;
#if defined(__gfx942__)
template <>
constexpr bool multiplies<__hip_fp8_e4m3_fnuz> = true;
#elif defined(__gfx950__) || defined(__GFX12__) || (defined(__HIP_PLATFORM_CPU__) && !defined(__GFX11__)) || \
    (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890)
template <>
constexpr bool multiplies<__hip_fp8_e4m3> = true;
#endif
template <typename E>
constexpr bool is_bfloat16 = false;
template <>
constexpr bool is_bfloat16<__hip_bfloat16> = true;

// The elements of a tile that a lane holds. A word is part of a strip; NVIDIA's operations take two words of each strip,
// those of A by parts, those of B by strips.
template <typename E, bool left>
struct Fragment {
    static constexpr int parts = kRun * depth<E> / 16 * (multiplies<E> ? sizeof(E) : 2) / 4;  // words of a strip
    static constexpr int words = kStrips * parts;
    static constexpr int each = kRun * depth<E> / 16 / parts;  // elements of a word
    static constexpr int together = kStrips == 2 ? 1 : parts;  // parts whose k lie side by side
    uint32_t word[words];

    __device__ static constexpr int strip_of(int w) { return kStrips == 1 ? 0 : left ? w % 2 : w / 2 % 2; }
    __device__ static constexpr int part_of(int w) { return kStrips == 1 ? w : w / 4 * 2 + (left ? w / 2 : w) % 2; }
    // The row of A or column of B, and the first k, of a word of this lane.
    __device__ __forceinline__ static int line_of(int w) {
        const int lane = static_cast<int>(__lane_id());
        return (kStrips == 2 ? lane / kGroups : lane % kSize) + strip_of(w) * 8;
    }
    __device__ __forceinline__ static int depth_of(int w) {
        const int lane = static_cast<int>(__lane_id()), part = part_of(w);
        const int group = kStrips == 2 ? lane % kGroups : lane / kSize % kGroups;
        return ((part / together * kGroups + group) * together + part % together) * each;
    }
};
template <typename E>
using FragmentA = Fragment<E, true>;
template <typename E>
using FragmentB = Fragment<E, false>;
struct Accumulator {
    float value[kSums] = {};
};

// Row and column of an accumulator's element `e`.
__device__ __forceinline__ int row_of(int e) {
    const int lane = static_cast<int>(__lane_id());
    if (kStrips == 2) return lane / 4 + e / 2 % 2 * 8;
    return kGroups == 1 ? 2 * e + lane / kSize : lane / kSize * kSums + e;
}
__device__ __forceinline__ int column_of(int e) {
    const int lane = static_cast<int>(__lane_id());
    return kStrips == 2 ? lane % 4 * 2 + e % 2 + e / 4 * 8 : lane % kSize;
}

template <typename To, typename From>
__device__ __forceinline__ To bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
template <typename E>
__device__ __forceinline__ uint32_t held_bits(const E& element) {
    if constexpr (!multiplies<E>) {
        return bits<uint16_t>(__float2half(static_cast<float>(element)));
    } else if constexpr (sizeof(E) == 2) {
        return bits<uint16_t>(element);
    } else {
        return bits<uint8_t>(element);
    }
}

// Fills a fragment: get(line, k) is the element in row `line` of A, or in column `line` of B.
template <typename E, bool left, typename Get>
__device__ __forceinline__ void fill(Fragment<E, left>& fragment, Get get) {
    using Held = Fragment<E, left>;
    constexpr int each = Held::each;
#pragma unroll
    for (int w = 0; w < Held::words; ++w) {
        uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < each; ++i) {
            word |= held_bits<E>(get(Held::line_of(w), Held::depth_of(w) + i)) << (32 / each * i);
        }
        fragment.word[w] = word;
    }
}

// Words that one access loads, or two.
template <int N>
struct alignas(N < 4 ? 4 * N : 16) Pack {
    uint32_t word[N];
};

// Lines whose elements lie side by side along k.
template <typename E, bool left>
__device__ __forceinline__ void load_along(Fragment<E, left>& fragment, const E* from, int64_t stride) {
    using Held = Fragment<E, left>;
    if constexpr (multiplies<E>) {
        constexpr int together = Held::together;
#pragma unroll
        for (int w = 0; w < Held::words; w += together) {
            const E* start = from + Held::line_of(w) * stride + Held::depth_of(w);
#if defined(__HIP_PLATFORM_CPU__)
            assert(reinterpret_cast<uintptr_t>(start) % alignof(Pack<together>) == 0 && "matrix::load, not aligned");
#endif
            const auto pack = *reinterpret_cast<const Pack<together>*>(start);
            __builtin_memcpy(fragment.word + w, pack.word, sizeof pack);
        }
    } else {
        fill(fragment, [&](int at, int k) { return from[at * stride + k]; });
    }
}

// A[i][k] at from[i * stride + k] if row_major, else at from[k * stride + i]. If row_major, `from` and `stride` are
// multiples of 16 bytes.
template <Layout layout, typename E>
__device__ __forceinline__ void load(FragmentA<E>& a, const E* from, int64_t stride) {
    if constexpr (layout == row_major) {
        load_along(a, from, stride);
    } else {
        fill(a, [&](int i, int k) { return from[k * stride + i]; });
    }
}

// B[k][j] at from[k * stride + j] if row_major, else at from[j * stride + k], where `from` and `stride` are multiples
// of 16 bytes.
template <Layout layout, typename E>
__device__ __forceinline__ void load(FragmentB<E>& b, const E* from, int64_t stride) {
    if constexpr (layout == column_major) {
        load_along(b, from, stride);
    } else {
        fill(b, [&](int j, int k) { return from[k * stride + j]; });
    }
}

// The same at any alignment, for a tile of which `rows` × `columns` belong to the matrix: the rest is zero, and nothing
// is read there. Both may be zero, negative, or larger than the tile.
template <Layout layout, typename E>
__device__ __forceinline__ void load(FragmentA<E>& a, const E* from, int64_t stride, int64_t rows, int64_t columns) {
    fill(a, [&](int i, int k) {
        if (i >= rows || k >= columns) return E(0.0f);
        return layout == row_major ? from[i * stride + k] : from[k * stride + i];
    });
}
template <Layout layout, typename E>
__device__ __forceinline__ void load(FragmentB<E>& b, const E* from, int64_t stride, int64_t rows, int64_t columns) {
    fill(b, [&](int j, int k) {
        if (k >= rows || j >= columns) return E(0.0f);
        return layout == row_major ? from[k * stride + j] : from[j * stride + k];
    });
}

#if defined(__HIP_PLATFORM_NVIDIA__)

constexpr int kOperationWords = 4;

// ldmatrix loads four squares of 8 rows of 16 bytes, and transposes them if the elements have 16 bits. Lane 8 q + r
// gives the address of row r of square q, which fills the lanes' word q.
#define ARENA_MATRIX_LDMATRIX(kind, row)                                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" kind ".shared.b16 {%0, %1, %2, %3}, [%4];"                         \
                 : "=r"(fragment.word[0]), "=r"(fragment.word[1]), "=r"(fragment.word[2]), "=r"(fragment.word[3])   \
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))                                        \
                 : "memory")
template <typename E, bool left>
__device__ __forceinline__ void load_shared_along(Fragment<E, left>& fragment, const E* from, int64_t stride) {
    if constexpr (multiplies<E>) {
        const int lane = static_cast<int>(__lane_id()), q = lane / 8, line = lane % 8 + 8 * fragment.strip_of(q);
        ARENA_MATRIX_LDMATRIX("", from + line * stride + fragment.part_of(q) * (16 / sizeof(E)));
    } else {
        load_along(fragment, from, stride);
    }
}
template <typename E, bool left>
__device__ __forceinline__ void load_shared_across(Fragment<E, left>& fragment, const E* from, int64_t stride) {
    if constexpr (sizeof(E) == 2) {
        const int lane = static_cast<int>(__lane_id()), q = lane / 8, k = lane % 8 + 8 * fragment.part_of(q);
        ARENA_MATRIX_LDMATRIX(".trans", from + k * stride + fragment.strip_of(q) * 8);
    } else {
        fill(fragment, [&](int at, int k) { return from[k * stride + at]; });
    }
}
#undef ARENA_MATRIX_LDMATRIX

#define ARENA_MATRIX_MMA(shape, type)                                                  \
    asm("mma.sync.aligned." shape ".row.col.f32." type "." type                        \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                               \
        : "r"(one[0]), "r"(one[1]), "r"(one[2]), "r"(one[3]), "r"(other[0]), "r"(other[1]))

// One operation for each half of the columns; `at`: its first word.
template <typename E>
__device__ __forceinline__ void operate(Accumulator& c, const FragmentA<E>& a, const FragmentB<E>& b, int at) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float* d = c.value + 4 * half;
        const uint32_t *one = a.word + at, *other = b.word + at + 2 * half;
        if constexpr (is_bfloat16<E>) {
            ARENA_MATRIX_MMA("m16n8k16", "bf16");
        } else if constexpr (sizeof(E) == 2 || !multiplies<E>) {
            ARENA_MATRIX_MMA("m16n8k16", "f16");
        } else {
            ARENA_MATRIX_MMA("m16n8k32", "e4m3");
        }
    }
}
#undef ARENA_MATRIX_MMA

#else

constexpr int kOperationWords = kRun / 2;

typedef _Float16 Halves __attribute__((ext_vector_type(kRun)));
typedef short Shorts __attribute__((ext_vector_type(kRun)));  // bfloat16
typedef float Sums __attribute__((ext_vector_type(kSums)));
typedef int Octets __attribute__((ext_vector_type(2)));  // 8 8-bit floats

template <typename Operand>
__device__ __forceinline__ Operand operand(const uint32_t* word) {
    Operand made;
    __builtin_memcpy(&made, word, sizeof made);
    return made;
}

template <typename E, bool left>
__device__ __forceinline__ void load_shared_along(Fragment<E, left>& fragment, const E* from, int64_t stride) {
    load_along(fragment, from, stride);
}
template <typename E, bool left>
__device__ __forceinline__ void load_shared_across(Fragment<E, left>& fragment, const E* from, int64_t stride) {
    fill(fragment, [&](int at, int k) { return from[k * stride + at]; });
}

// One operation; `at`: its first word.
template <typename E>
__device__ __forceinline__ void operate(Accumulator& c, const FragmentA<E>& a, const FragmentB<E>& b, int at) {
    Sums sums = bits<Sums>(c.value);
    const uint32_t *left = a.word + at, *right = b.word + at;
#if defined(__GFX11__)
    if constexpr (is_bfloat16<E>) {
        sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(operand<Shorts>(left), operand<Shorts>(right), sums);
    } else {
        sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(operand<Halves>(left), operand<Halves>(right), sums);
    }
#elif defined(ARENA_MATRIX_RDNA4)
    if constexpr (is_bfloat16<E>) {
        sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(operand<Shorts>(left), operand<Shorts>(right), sums);
    } else if constexpr (sizeof(E) == 2 || !multiplies<E>) {
        sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(operand<Halves>(left), operand<Halves>(right), sums);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            sums = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(operand<Octets>(left + i),
                                                                        operand<Octets>(right + i), sums);
        }
    }
#else
    if constexpr (is_bfloat16<E>) {
        sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(operand<Shorts>(left), operand<Shorts>(right), sums, 0, 0, 0);
    } else if constexpr (sizeof(E) == 2 || !multiplies<E>) {
        sums = __builtin_amdgcn_mfma_f32_16x16x16f16(operand<Halves>(left), operand<Halves>(right), sums, 0, 0, 0);
    } else {
        sums = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(operand<long>(left), operand<long>(right), sums, 0, 0, 0);
    }
#endif
    __builtin_memcpy(c.value, &sums, sizeof sums);
}

#endif

// `load` from shared memory, fast in both layouts on NVIDIA: `from` and `stride` are always multiples of 16 bytes.
template <Layout layout, typename E>
__device__ __forceinline__ void load_shared(FragmentA<E>& a, const E* from, int64_t stride) {
    if constexpr (layout == row_major) {
        load_shared_along(a, from, stride);
    } else {
        load_shared_across(a, from, stride);
    }
}
template <Layout layout, typename E>
__device__ __forceinline__ void load_shared(FragmentB<E>& b, const E* from, int64_t stride) {
    if constexpr (layout == column_major) {
        load_shared_along(b, from, stride);
    } else {
        load_shared_across(b, from, stride);
    }
}

// c += a × b.
template <typename E>
__device__ __forceinline__ void multiply_accumulate(Accumulator& c, const FragmentA<E>& a, const FragmentB<E>& b) {
    constexpr int words = FragmentA<E>::words, step = multiplies<E> ? words : kOperationWords;
#pragma unroll
    for (int at = 0; at < words; at += step) operate(c, a, b, at);
}

// action(row, column, value) for each element of the tile that this lane holds; `value` may be changed.
template <typename Action>
__device__ __forceinline__ void for_each(Accumulator& c, Action action) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) action(row_of(e), column_of(e), c.value[e]);
}

// Numbers that belong to the rows of a tile: those rows that this lane has elements of in an accumulator.
constexpr int kRows = kStrips == 2 ? 2 : kSums;
struct RowValues {
    float value[kRows];
};
__device__ __forceinline__ constexpr int slot_of(int e) { return kStrips == 2 ? e / 2 % 2 : e; }

// action(row, column, value, of_row), where `of_row` is the row's number in `rows`. Both may be changed.
template <typename Action>
__device__ __forceinline__ void for_each(Accumulator& c, RowValues& rows, Action action) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) action(row_of(e), column_of(e), c.value[e], rows.value[slot_of(e)]);
}

// The combination, in every lane, of what the lanes that share a row have for it.
template <typename Combine>
__device__ __forceinline__ void combine_lanes(RowValues& rows, Combine combine) {
#pragma unroll
    for (int distance = 1; distance < (kStrips == 2 ? kGroups : kSize); distance *= 2) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) rows.value[i] = combine(rows.value[i], __shfl_xor(rows.value[i], distance));
    }
}

// C[i][j] to to[i * stride + j], rounded to E.
template <typename E>
__device__ __forceinline__ void store(const Accumulator& c, E* to, int64_t stride) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) to[row_of(e) * stride + column_of(e)] = static_cast<E>(c.value[e]);
}

// The same for a tile of which `rows` × `columns` belong to the matrix; nothing else is written.
template <typename E>
__device__ __forceinline__ void store(const Accumulator& c, E* to, int64_t stride, int64_t rows, int64_t columns) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) {
        const int row = row_of(e), column = column_of(e);
        if (row < rows && column < columns) to[row * stride + column] = static_cast<E>(c.value[e]);
    }
}

}  // namespace matrix

#endif
