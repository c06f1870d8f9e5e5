"""Matrix product with AWQ weights that reads a word of codes once, and splits K only where tiles are few.

Where a block of K lies in one group, the small integers code - zero are multiplied as they are, exactly in 16 bits,
and the scale is applied to the tile of results.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 512
MAX_PARTS = 16
BLOCKS_OF_A_PART = 8


@triton.jit
def _multiply_part(
    a_ptr,
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    M,
    N,
    K,
    group_size,
    part_length,
    BLOCK_M: tl.constexpr,
    WORDS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ONE_GROUP: tl.constexpr,
):
    """One part of K for one tile. With a single part, `out_ptr` is the result itself."""
    part = tl.program_id(2)
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    words = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    columns = (tl.program_id(1) * WORDS * 8 + tl.arange(0, WORDS * 8))[None, :]
    field = tl.arange(0, 8)
    shifts = (field // 2 * 4 + field % 2 * 16)[None, None, :]
    words_across = N // 8
    row_mask = rows < M
    word_mask = (words < words_across)[None, :]
    column_mask = columns < N
    acc = tl.zeros((BLOCK_M, WORDS * 8), dtype=tl.float32)
    begin = part * part_length
    for start in range(begin, tl.minimum(begin + part_length, K), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < K
        a = tl.load(a_ptr + rows * K + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        code_mask = inside[:, None] & word_mask
        codes = tl.load(qweight_ptr + k[:, None] * words_across + words[None, :], mask=code_mask, other=0)
        if ONE_GROUP:
            group = start // group_size
            zeros = tl.load(qzeros_ptr + group * words_across + words[None, :], mask=word_mask, other=0)
            scales = tl.load(scales_ptr + group * N + columns, mask=column_mask, other=0.0).to(tl.float32)
        else:
            groups = (k // group_size)[:, None]
            zeros = tl.load(qzeros_ptr + groups * words_across + words[None, :], mask=code_mask, other=0)
            scale_mask = inside[:, None] & column_mask
            scales = tl.load(scales_ptr + groups * N + columns, mask=scale_mask, other=0.0).to(tl.float32)
        centred = ((codes[:, :, None] >> shifts) & 15) - ((zeros[:, :, None] >> shifts) & 15)
        weight = tl.reshape(centred, (BLOCK_K, WORDS * 8))
        if ONE_GROUP:
            acc += tl.dot(a, weight.to(a.dtype), input_precision=PRECISION) * scales
        else:
            acc += tl.dot(a, (weight * scales).to(a.dtype), input_precision=PRECISION)
    out_ptrs = out_ptr + (part * M + rows) * N + columns
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


@triton.jit
def _add_parts(partial_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(partial_ptr + i + part * count.to(tl.int64), mask=inside, other=0.0)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


def _parts(tiles: int, blocks: int) -> int:
    """Into how many parts to cut K: a power of two."""
    wanted = max(1, min(ENOUGH_PROGRAMS // tiles, blocks // BLOCKS_OF_A_PART, MAX_PARTS))
    return 1 << (wanted.bit_length() - 1)


def awq_gemm(a, qweight, scales, qzeros, out):
    M, N = out.shape
    K = a.shape[1]
    group_size = K // scales.shape[0]
    block_k = 64 if group_size % 64 == 0 else 32
    block_m = max(16, min(64, triton.next_power_of_2(M)))
    words = 8 if M <= 64 else 16
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, words * 8))
    blocks = triton.cdiv(K, block_k)
    parts = _parts(grid[0] * grid[1], blocks)
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
        N,
        K,
        group_size,
        triton.cdiv(blocks, parts) * block_k,
        BLOCK_M=block_m,
        WORDS=words,
        BLOCK_K=block_k,
        ONE_GROUP=group_size % block_k == 0,
        # Unpacked codes fill many registers.
        num_warps=8 if block_m == 64 else 4,
    )
    if parts > 1:
        _add_parts[(triton.cdiv(M * N, 1024),)](partial, out, M * N, PARTS=parts, BLOCK=1024)
