// Gathers rows in the widest accesses that their addresses admit, with four or eight of them in flight a thread.
//
// The baseline has a block of 256 threads for each row, in accesses of one element: of a row of 3 elements 253 threads
// have nothing to do, and a thread of a long row waits for each load before the next, since the store between them could
// alias. Here a row has as many threads as give each of them four accesses, at least eight where it has as many, and a
// block as many rows as fit. Loads precede all stores. A row of 4096 float16 takes 512 accesses in place of 4096.
#include "task.h"

constexpr int kThreads = 256;

// What is written is not read again: it should not displace rows of the table from the cache.
template <typename Word>
__device__ __forceinline__ void store_streaming(Word* to, Word word) {
#if defined(__HIP_PLATFORM_NVIDIA__)
    __stcs(to, word);
#else
    *to = word;
#endif
}

// A row has 2^log_lanes threads, of which each takes kItems accesses of sizeof(Word) bytes. Sizes are in words.
template <int kItems, typename Word>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(const Word* __restrict__ table, const int64_t* __restrict__ index, Word* __restrict__ y,
                       int64_t pitch, int width, int64_t rows, int log_lanes) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads >> log_lanes) + (threadIdx.x >> log_lanes);
    if (row >= rows) return;
    const int lanes = 1 << log_lanes;
    const int first = (static_cast<int>(blockIdx.y) * kItems << log_lanes) + (static_cast<int>(threadIdx.x) & (lanes - 1));
    const Word* from = table + index[row] * pitch + first;
    Word* to = y + row * width + first;
    const int left = width - first;
    if (left <= 0) return;
    Word held[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) held[i] = from[i * lanes < left ? i * lanes : 0];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        if (i * lanes < left) store_streaming(to + i * lanes, held[i]);
    }
}

template <typename Word>
hipError_t launch(const void* table, const int64_t* index, void* y, int64_t pitch_bytes, int64_t row_bytes,
                  int64_t rows, hipStream_t stream) {
    constexpr int kItems = sizeof(Word) >= 8 ? 4 : 8;
    const int width = static_cast<int>(row_bytes / sizeof(Word));
    int log_lanes = 0;
    while (1 << log_lanes < kThreads && 1 << log_lanes < width &&
           (1 << log_lanes < 8 || kItems << log_lanes < width)) {
        ++log_lanes;
    }
    const int64_t rows_of_block = kThreads >> log_lanes;
    const int columns = kItems << log_lanes;
    const dim3 blocks(static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block),
                      static_cast<unsigned>((width + columns - 1) / columns));
    gather_rows_kernel<kItems><<<blocks, kThreads, 0, stream>>>(
        static_cast<const Word*>(table), index, static_cast<Word*>(y),
        pitch_bytes / static_cast<int64_t>(sizeof(Word)), width, rows, log_lanes);
    return hipGetLastError();
}

extern "C" hipError_t gather_rows(const T* table, const int64_t* index, T* y, int64_t, int64_t D, int64_t K,
                                  int64_t row_gap, hipStream_t stream) {
    const int64_t row = D * static_cast<int64_t>(sizeof(T));
    const int64_t pitch = (D + row_gap) * static_cast<int64_t>(sizeof(T));
    // The lowest bit that is set in any of these is what all of them are a multiple of.
    const uintptr_t places = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(y) |
                             static_cast<uintptr_t>(row) | static_cast<uintptr_t>(pitch);
    if (places % 16 == 0) return launch<uint4>(table, index, y, pitch, row, K, stream);
    if (places % 8 == 0) return launch<uint2>(table, index, y, pitch, row, K, stream);
    if (places % 4 == 0) return launch<uint32_t>(table, index, y, pitch, row, K, stream);
    return launch<uint16_t>(table, index, y, pitch, row, K, stream);
}
