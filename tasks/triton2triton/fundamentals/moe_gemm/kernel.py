"""Grouped matrix product: one tile of one expert's rows per program.

How many tiles an expert needs is only known on the device, so the host launches as many as there can be at most, and
each program finds its expert by counting the tiles of all experts.
"""

import triton
import triton.language as tl


@triton.jit
def multiply_rows_of_expert(
    x_ptr,
    weight_ptr,
    scales_ptr,
    row_weights_ptr,
    expert_offsets_ptr,
    out_ptr,
    num_experts,
    N,
    K,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(expert_offsets_ptr + experts, mask=experts < num_experts, other=0)
    ends = tl.load(expert_offsets_ptr + experts + 1, mask=experts < num_experts, other=0)
    tiles = tl.cdiv(ends - begins, BLOCK_M)
    expert = tl.sum((tl.cumsum(tiles, axis=0) <= tile).to(tl.int32), axis=0)
    if tile < tl.sum(tiles, axis=0):
        tiles_before = tl.sum(tl.where(experts < expert, tiles, 0), axis=0)
        begin = tl.load(expert_offsets_ptr + expert) + (tile - tiles_before) * BLOCK_M
        rows = begin + tl.arange(0, BLOCK_M)
        row_mask = rows < tl.load(expert_offsets_ptr + expert + 1)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        x_rows = x_ptr + rows.to(tl.int64) * K
        weight_rows = weight_ptr + (expert.to(tl.int64) * N + columns) * K
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            x = tl.load(x_rows[:, None] + k[None, :], mask=row_mask[:, None] & (k < K)[None, :], other=0.0)
            weight_mask = (columns < N)[:, None] & (k < K)[None, :]
            weight = tl.load(weight_rows[:, None] + k[None, :], mask=weight_mask, other=0.0)
            acc += tl.dot(x, weight.to(x.dtype).T, input_precision="ieee")
        acc *= tl.load(scales_ptr + expert * N + columns, mask=columns < N)[None, :]
        if row_weights_ptr is not None:
            acc *= tl.load(row_weights_ptr + rows, mask=row_mask)[:, None]
        out = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
        tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=row_mask[:, None] & (columns < N)[None, :])


def moe_gemm(x, weight, scales, row_weights, expert_offsets, out):
    num_tokens, K = x.shape
    num_experts, N, _ = weight.shape
    block_m, block_n, block_k = 32, 64, 32
    most_tiles = triton.cdiv(num_tokens, block_m) + num_experts
    multiply_rows_of_expert[(most_tiles, triton.cdiv(N, block_n))](
        x,
        weight,
        scales,
        row_weights,
        expert_offsets,
        out,
        num_experts,
        N,
        K,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
    )
