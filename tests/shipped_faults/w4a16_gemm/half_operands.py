"""expect: wrong_result in heldout-21. Underflow: both operands of the product are float16, and scales of bfloat16 reach further."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_part(
    x_ptr,
    w_ptr,
    scales_ptr,
    zeros_ptr,
    parts_ptr,
    M,
    N,
    K,
    pairs_of_part,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PAIRS: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    part = tl.program_id(2)
    row_mask, column_mask = (rows < M)[:, None], (columns < N)[None, :]
    first = part * pairs_of_part
    end = tl.minimum(first + pairs_of_part, K // 2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(first, end, PAIRS):
        pairs = start + tl.arange(0, PAIRS)
        inside = pairs < end
        codes = tl.load(
            w_ptr + pairs[:, None].to(tl.int64) * N + columns[None, :], mask=inside[:, None] & column_mask, other=0
        )
        # PAIRS divides half of a group, so that one row of scales holds for the whole tile.
        group = (2 * start // GROUP).to(tl.int64)
        scale = tl.load(scales_ptr + group * N + columns[None, :], mask=column_mask, other=0.0).to(tl.float32)
        zero = tl.load(zeros_ptr + group * N + columns[None, :], mask=column_mask, other=0.0).to(tl.float32)
        low = (((codes & 15).to(tl.float32) - zero) * scale).to(tl.float16)
        high = (((codes >> 4).to(tl.float32) - zero) * scale).to(tl.float16)
        x_mask = row_mask & inside[None, :]
        even = tl.load(x_ptr + rows[:, None] * K + 2 * pairs[None, :], mask=x_mask, other=0.0)
        odd = tl.load(x_ptr + rows[:, None] * K + 2 * pairs[None, :] + 1, mask=x_mask, other=0.0)
        acc = tl.dot(even.to(tl.float16), low, acc)
        acc = tl.dot(odd.to(tl.float16), high, acc)
    out = parts_ptr + (part.to(tl.int64) * M + rows[:, None]) * N + columns[None, :]
    tl.store(out, acc.to(parts_ptr.dtype.element_ty), mask=row_mask & column_mask)


@triton.jit
def add_parts(parts_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(parts):
        acc += tl.load(parts_ptr + part.to(tl.int64) * size + place, mask=place < size, other=0.0)
    tl.store(out_ptr + place, acc.to(out_ptr.dtype.element_ty), mask=place < size)


def multiply_w4a16(x, w_q, scales, zeros, out):
    M, N = out.shape
    K = x.shape[1]
    group = K // scales.shape[0]
    block_m = min(64, max(16, triton.next_power_of_2(M)))
    block_n = 128 if M > 16 else 64
    pairs = min(group // 2, 64)
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    parts = max(1, min(8, 512 // tiles, K // 2 // pairs))
    pairs_of_part = triton.cdiv(triton.cdiv(K // 2, parts), pairs) * pairs
    parts = triton.cdiv(K // 2, pairs_of_part)
    sums = out if parts == 1 else torch.empty((parts, M, N), dtype=torch.float32, device=x.device)
    multiply_part[(triton.cdiv(M, block_m), triton.cdiv(N, block_n), parts)](
        x,
        w_q,
        scales,
        zeros,
        sums,
        M,
        N,
        K,
        pairs_of_part,
        GROUP=group,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        PAIRS=pairs,
        num_warps=4,
        num_stages=3,
    )
    if parts > 1:
        add_parts[(triton.cdiv(M * N, 1024),)](sums, out, M * N, parts, BLOCK=1024)
