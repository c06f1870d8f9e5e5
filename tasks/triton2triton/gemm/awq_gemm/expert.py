"""Matrix product with AWQ weights that reads a word of codes once, and splits K only where tiles are few.

Where a block of K lies in one group, the small integers code - zero are multiplied as they are, exactly in 16 bits,
and the scale is applied to the tile of results.

A conversion from integers takes as long as eight additions. The bits 0x6400 + code, however, are the float16
1024 + code, and a word holds the codes of neighbouring columns 16 bits apart: two operations on the word make two such
numbers, from which 1024 + zero is subtracted. A thread keeps the eight columns of its words, and stores them to shared
memory as one vector.
"""

import math

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 528  # of four warps: four on each of an H200's 132 multiprocessors
MAX_PARTS = 16
BLOCKS_OF_A_PART = 8


@triton.jit
def _pair(words, SHIFT: tl.constexpr):
    """Return 1024 + code in float16 of two neighbouring columns."""
    bits = ((words >> SHIFT) & 0x000F000F) | 0x64006400
    low = bits.to(tl.int16).to(tl.float16, bitcast=True)
    return low, (bits >> 16).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def _difference(codes, zeros, SHIFT: tl.constexpr):
    low, high = _pair(codes, SHIFT)
    zero_low, zero_high = _pair(zeros, SHIFT)
    return low - zero_low, high - zero_high


@triton.jit
def _centred(codes, zeros, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return code - zero of words (ROWS, COLUMNS // 8) in float16 as (ROWS, COLUMNS)."""
    low0, high0 = _difference(codes, zeros, 0)
    low1, high1 = _difference(codes, zeros, 4)
    low2, high2 = _difference(codes, zeros, 8)
    low3, high3 = _difference(codes, zeros, 12)
    # Column 4 * i + 2 * j + k of a word is at [i, j, k].
    low = tl.join(tl.join(low0, low2), tl.join(low1, low3))
    high = tl.join(tl.join(high0, high2), tl.join(high1, high3))
    return tl.reshape(tl.join(low, high), (ROWS, COLUMNS))


@triton.jit
def _multiply_part(
    a_ptr,
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    M,
    K,
    words_across,
    group_size,
    part_length,
    BLOCK_M: tl.constexpr,
    WORDS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ONE_GROUP: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """One part of K for one tile. With a single part, `out_ptr` is the result itself."""
    # The compiler sees how long the vectors of a are, and that the scales of a word are whole vectors.
    K = K // VECTOR * VECTOR
    N = words_across * 8
    part = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    words = (tl.program_id(1) * WORDS + tl.arange(0, WORDS)) % words_across
    columns = tl.program_id(1) * WORDS * 8 + tl.arange(0, WORDS * 8)
    k = tl.arange(0, BLOCK_K)
    begin = part * part_length
    # Rows and columns beyond the end repeat others, and are not stored.
    a_offsets = (rows % M)[:, None] * K + (begin + k)[None, :]
    code_offsets = (begin + k)[:, None] * words_across + words[None, :]
    scales_ptr += (columns % N)[None, :]
    qzeros_ptr += words[None, :]
    acc = tl.zeros((BLOCK_M, WORDS * 8), dtype=tl.float32)
    end = tl.minimum(begin + part_length, K)
    group = begin // group_size
    left = group_size - begin % group_size  # rows of the group from this block on
    if ONE_GROUP:
        scales = tl.load(scales_ptr + group * N)
    for start in range(begin, end, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_ptr + a_offsets)
            codes = tl.load(qweight_ptr + code_offsets)
        else:
            a = tl.load(a_ptr + a_offsets, mask=(k < K - start)[None, :], other=0.0)
            codes = tl.load(qweight_ptr + code_offsets, mask=(k < K - start)[:, None], other=0)
        if ONE_GROUP:
            zeros = tl.load(qzeros_ptr + group * words_across)
            # Loads of so few bytes are not pipelined: those of the next block are begun before this one's product.
            group += tl.where((left == BLOCK_K) & (start + BLOCK_K < end), 1, 0)
            left = tl.where(left == BLOCK_K, group_size, left - BLOCK_K)
            next_scales = tl.load(scales_ptr + group * N)
            weight = _centred(codes, zeros, BLOCK_K, WORDS * 8).to(a.dtype)
            acc += tl.dot(a, weight, input_precision=PRECISION) * scales.to(tl.float32)
            scales = next_scales
        else:
            groups = (tl.minimum(start + k, K - 1) // group_size)[:, None]
            zeros = tl.load(qzeros_ptr + groups * words_across)
            weight = _centred(codes, zeros, BLOCK_K, WORDS * 8) * tl.load(scales_ptr + groups * N).to(tl.float32)
            acc += tl.dot(a, weight.to(a.dtype), input_precision=PRECISION)
        a_offsets += BLOCK_K
        code_offsets += BLOCK_K * words_across
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    out_offsets = (part * M + rows)[:, None] * N + columns[None, :]
    tl.store(out_ptr + out_offsets, acc.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_parts(partial_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(partial_ptr + i + part * count.to(tl.int64), mask=inside, other=0.0)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


def _part(tiles: int, blocks: int, num_warps: int) -> int:
    """How many blocks a part of K has, so that all programs run at once and none has to be waited for at the end."""
    enough = ENOUGH_PROGRAMS * 4 // num_warps
    return triton.cdiv(blocks, max(1, min(enough // tiles, blocks // BLOCKS_OF_A_PART, MAX_PARTS)))


def awq_gemm(a, qweight, scales, qzeros, out):
    M, N = out.shape
    K = a.shape[1]
    group_size = K // scales.shape[0]
    # AMD devices have 64 KiB of shared memory.
    wide = a.element_size() == 2 and not torch.version.hip
    block_m = max(16, min(64, triton.next_power_of_2(M)))
    words = 16 if wide or M > 64 else 8
    block_k = 64 if group_size % 64 == 0 else 32
    num_warps = 8 if block_m == 64 else 4  # unpacked codes fill many registers
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, words * 8))
    blocks = triton.cdiv(K, block_k)
    part = _part(grid[0] * grid[1], blocks, num_warps)
    parts = triton.cdiv(blocks, part)
    partial = out
    if parts > 1:
        partial = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    _multiply_part[(*grid, parts)](
        a,
        qweight,
        scales,
        qzeros,
        partial,
        M,
        K,
        N // 8,
        group_size,
        part * block_k,
        BLOCK_M=block_m,
        WORDS=words,
        BLOCK_K=block_k,
        ONE_GROUP=group_size % block_k == 0,
        WHOLE_BLOCKS=K % block_k == 0,
        VECTOR=math.gcd(K, 16),
        num_warps=num_warps,
        num_stages=4 if wide else 3,
        # On an H200, two programs of eight warps fit on a multiprocessor.
        **({"maxnreg": 128} if wide else {}),
    )
    if parts > 1:
        _add_parts[(triton.cdiv(M * N, 1024),)](partial, out, M * N, PARTS=parts, BLOCK=1024)
