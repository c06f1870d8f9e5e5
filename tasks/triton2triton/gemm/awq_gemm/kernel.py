"""Matrix product with AWQ weights: a program sums one part of K for one tile; a second kernel adds the parts."""

import torch
import triton
import triton.language as tl

PARTS = 4
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
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    part = tl.program_id(0)
    rows = (tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    row_mask = rows < M
    column_mask = columns < N
    words = columns // 8
    # Of the eight columns in a word, the even ones lie in its lower half, the odd ones in its upper half.
    shifts = columns % 8 // 2 * 4 + columns % 2 * 16
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    begin = part * part_length
    for start in range(begin, tl.minimum(begin + part_length, K), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < K
        a = tl.load(a_ptr + rows * K + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        weight_mask = inside[:, None] & column_mask
        groups = (k // group_size)[:, None]
        codes = tl.load(qweight_ptr + k[:, None] * (N // 8) + words, mask=weight_mask, other=0)
        zeros = tl.load(qzeros_ptr + groups * (N // 8) + words, mask=weight_mask, other=0)
        scales = tl.load(scales_ptr + groups * N + columns, mask=weight_mask, other=0.0)
        weight = (((codes >> shifts) & 15) - ((zeros >> shifts) & 15)) * scales.to(tl.float32)
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
    multiply_part[(PARTS, triton.cdiv(M, 64), triton.cdiv(N, 64))](
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
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=BLOCK_K,
    )
    add_parts[(triton.cdiv(M * N, 1024),)](partial, out, M * N, PARTS=PARTS, BLOCK=1024)
