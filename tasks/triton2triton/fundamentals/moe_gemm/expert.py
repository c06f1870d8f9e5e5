"""Grouped product with 8-bit weights, in tiles as high as experts have rows.

The baseline has tiles of 32 rows: an expert with 256 rows has its weights loaded and widened eight times. Here a tile
has up to 128 rows, by the average number of rows of an expert. Rows and columns beyond the end repeat the last one in
place of masks. Widened weights go through shared memory to the matrix units. From registers, as the left operand of a
turned product, they were slower on an H200, and wrong: Triton 3.6 let products run into the next step, which overwrites
these registers before they are read.

Rows of codes that are not whole vectors are copied to whole blocks first where experts have many rows: the baseline
loads such codes byte by byte for every 32 rows. float32 keeps the baseline's tile, except where N is at most 16: there
a step has twice the depth and an eighth of the results, as the chain of steps is all there is.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
MANY_ROWS = 64


@triton.jit
def _pad_rows(x_ptr, out_ptr, K, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + row * width + k, tl.load(x_ptr + row * K + k, mask=k < K, other=0), mask=k < width)


@triton.jit
def _find_tile(expert_offsets_ptr, num_experts, tile, EXPERTS: tl.constexpr, BLOCK_M: tl.constexpr):
    """Return the expert that has a tile, or num_experts or more, and the number of the tile among its own."""
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(expert_offsets_ptr + experts, mask=experts < num_experts, other=0)
    ends = tl.load(expert_offsets_ptr + experts + 1, mask=experts < num_experts, other=0)
    last_tiles = tl.cumsum(tl.cdiv(ends - begins, BLOCK_M), axis=0)
    before = last_tiles <= tile
    return tl.sum(before.to(tl.int32), axis=0), tile - tl.max(tl.where(before, last_tiles, 0), axis=0)


@triton.jit
def _multiply_rows_of_expert(
    x_ptr,
    weight_ptr,
    scales_ptr,
    row_weights_ptr,
    expert_offsets_ptr,
    out_ptr,
    num_experts,
    N,
    K,
    WHOLE_BLOCKS: tl.constexpr,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Multiply the rows of one tile of one expert."""
    expert, tile = _find_tile(expert_offsets_ptr, num_experts, tl.program_id(0), EXPERTS, BLOCK_M)
    if expert >= num_experts:
        return
    end = tl.load(expert_offsets_ptr + expert + 1)
    rows = tl.load(expert_offsets_ptr + expert) + tile * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    of_expert = expert * N + tl.minimum(columns, N - 1)
    k = tl.arange(0, BLOCK_K)
    # Offsets have 32 bits, and need half the registers of pointers.
    x_offsets = tl.minimum(rows, end - 1)[:, None] * K + k[None, :]
    weight_offsets = of_expert[:, None] * K + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            x = tl.load(x_ptr + x_offsets)
            weight = tl.load(weight_ptr + weight_offsets)
        else:
            x = tl.load(x_ptr + x_offsets, mask=(k < K - start)[None, :], other=0.0)
            weight = tl.load(weight_ptr + weight_offsets, mask=(k < K - start)[None, :], other=0.0)
        acc = tl.dot(x, weight.to(x.dtype).T, acc, input_precision=PRECISION)
        x_offsets += BLOCK_K
        weight_offsets += BLOCK_K
    acc *= tl.load(scales_ptr + of_expert)[None, :]
    if row_weights_ptr is not None:
        acc *= tl.load(row_weights_ptr + tl.minimum(rows, end - 1))[:, None]
    out = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=(rows < end)[:, None] & (columns < N)[None, :])


def _padded(x, width):
    """Return a copy of x (..., K) whose rows have so many values, with zeros behind their own."""
    out = torch.empty((*x.shape[:-1], width), dtype=x.dtype, device=x.device)
    source, target = (x.view(torch.uint8), out.view(torch.uint8)) if x.element_size() == 1 else (x, out)
    rows = x.numel() // x.shape[-1]
    _pad_rows[(rows, triton.cdiv(width, 1024))](source, target, x.shape[-1], width, BLOCK=1024)
    return out


def _tile(rows_of_expert, N, item_bytes):
    """Return rows, columns, depth, warps and stages of a tile for experts with so many rows on average."""
    if item_bytes == 4:
        return (16, 16, 64, 4, 3) if N <= 16 else (32, 64, 32, 4, 3)
    if rows_of_expert <= 32:
        # The weights bound the time: many small programs, with long stretches of weights in flight.
        return max(16, triton.next_power_of_2(rows_of_expert)), 64, 128, 4, 4
    return (64 if rows_of_expert <= 64 else 128), 128, 64, 8, 4


def moe_gemm(x, weight, scales, row_weights, expert_offsets, out):
    num_tokens, K = x.shape
    num_experts, N, _ = weight.shape
    rows_of_expert = triton.cdiv(num_tokens, num_experts)
    block_m, block_n, block_k, num_warps, num_stages = _tile(rows_of_expert, N, x.element_size())
    if K % 16 and x.element_size() == 2 and rows_of_expert >= MANY_ROWS and N >= MANY_ROWS:
        K = triton.cdiv(K, block_k) * block_k
        x, weight = _padded(x, K), _padded(weight, K)
    most_tiles = triton.cdiv(num_tokens, block_m) + num_experts
    _multiply_rows_of_expert[(most_tiles, triton.cdiv(N, block_n))](
        x,
        weight,
        scales,
        row_weights,
        expert_offsets,
        out,
        num_experts,
        N,
        K,
        WHOLE_BLOCKS=K % block_k == 0,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        # 96 of an H200's 227 KiB of shared memory at most, for two programs. AMD devices have 64 KiB.
        num_stages=2 if torch.version.hip else num_stages,
    )
