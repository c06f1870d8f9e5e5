"""Matrix product with AWQ weights: a program sums one part of K for one tile; a second kernel adds the parts."""

import torch
import triton
import triton.language as tl

PARTS = 4
WORDS = 8
BLOCK_K = 32


@triton.jit
def multiply_part(
    a_ptr,
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    partial_ptr,
    M,
    N,
    K,
    group_size,
    part_length,
    BLOCK_M: tl.constexpr,
    WORDS: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    words = (tl.program_id(1) * WORDS + tl.arange(0, WORDS))[None, :]
    part = tl.program_id(2)
    columns = (tl.program_id(1) * WORDS * 8 + tl.arange(0, WORDS * 8))[None, :]
    row_mask = rows < M
    word_mask = words < N // 8
    column_mask = columns < N
    # Of the eight columns in a word, the even ones lie in its lower half, the odd ones in its upper half.
    column = tl.arange(0, 8)
    shifts = (column // 2 * 4 + column % 2 * 16)[None, None, :]
    acc = tl.zeros((BLOCK_M, WORDS * 8), dtype=tl.float32)
    begin = part * part_length
    for start in range(begin, tl.minimum(begin + part_length, K), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < K
        a = tl.load(a_ptr + rows * K + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        groups = (k // group_size)[:, None]
        mask = inside[:, None] & word_mask
        codes = tl.load(qweight_ptr + k[:, None] * (N // 8) + words, mask=mask, other=0)
        zeros = tl.load(qzeros_ptr + groups * (N // 8) + words, mask=mask, other=0)
        scales = tl.load(scales_ptr + groups * N + columns, mask=inside[:, None] & column_mask, other=0.0)
        centred = ((codes[:, :, None] >> shifts) & 15) - ((zeros[:, :, None] >> shifts) & 15)
        weight = tl.reshape(centred, (BLOCK_K, WORDS * 8)) * scales.to(tl.float32)
        acc += tl.dot(a, weight.to(a.dtype), input_precision="ieee")
    tl.store(partial_ptr + (part * M + rows) * N + columns, acc, mask=row_mask & column_mask)


@triton.jit
def add_parts(partial_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(PARTS):
        total += tl.load(partial_ptr + i, mask=inside, other=0.0)
        partial_ptr += count
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


def awq_gemm(a, qweight, scales, qzeros, out):
    M, N = out.shape
    K = a.shape[1]
    partial = torch.empty((PARTS, M, N), dtype=torch.float32, device=a.device)
    # A part is whole blocks long, so that none reads into the next.
    part_length = triton.cdiv(K, PARTS * BLOCK_K) * BLOCK_K
    block_m = max(16, min(64, triton.next_power_of_2(M)))
    multiply_part[(triton.cdiv(M, block_m), triton.cdiv(N, WORDS * 8), PARTS)](
        a,
        qweight,
        scales,
        qzeros,
        partial,
        M,
        N,
        K,
        K // scales.shape[0],
        part_length,
        BLOCK_M=block_m,
        WORDS=WORDS,
        BLOCK_K=BLOCK_K,
    )
    add_parts[(triton.cdiv(M * N, 1024),)](partial, out, M * N, PARTS=PARTS, BLOCK=1024)
