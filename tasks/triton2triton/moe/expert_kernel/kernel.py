"""One expert's product: one program per tile of the listed tokens and tile of columns, on widened codes.

Tiles are as high as there may be tokens, up to 128.
"""

import triton
import triton.language as tl


@triton.jit
def listed_tokens_tile(
    x_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    expert_id_ptr,
    token_ids_ptr,
    rows_ptr,
    out_ptr,
    N,
    K,
    HAS_BIAS: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    DEPTH: tl.constexpr,
):
    first = tl.program_id(1) * TILE_M
    num_rows = tl.load(rows_ptr)
    if first < num_rows:
        expert = tl.load(expert_id_ptr).to(tl.int64)
        rows = (first + tl.arange(0, TILE_M)).to(tl.int64)
        columns = tl.program_id(0) * TILE_N + tl.arange(0, TILE_N)
        tokens = tl.load(token_ids_ptr + rows, mask=rows < num_rows, other=0).to(tl.int64)
        per_column = expert * N + columns
        acc = tl.zeros((TILE_M, TILE_N), tl.float32)
        for start in range(0, K, DEPTH):
            k = start + tl.arange(0, DEPTH)
            left = tl.load(x_ptr + tokens[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0)
            codes_mask = (columns < N)[None, :] & (k < K)[:, None]
            codes = tl.load(weight_ptr + per_column[None, :] * K + k[:, None], mask=codes_mask, other=0)
            # Codes up to 127 are exact in every dtype of x.
            acc = tl.dot(left, codes.to(left.dtype), acc, input_precision="ieee")
        acc *= tl.load(scales_ptr + per_column, mask=columns < N, other=0.0)[None, :]
        if HAS_BIAS:
            acc += tl.load(bias_ptr + per_column, mask=columns < N, other=0.0).to(tl.float32)[None, :]
        target = out_ptr + rows[:, None] * N + columns[None, :]
        inside = (rows < num_rows)[:, None] & (columns < N)[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=inside)


def expert_kernel(x, weight, scales, bias, expert_id, token_ids, expert_num_tokens, out):
    max_tokens, N = out.shape
    wide = x.element_size() == 4
    tile_m = max(16, min(64 if wide else 128, triton.next_power_of_2(max_tokens)))
    tile_n = 64 if wide else 128
    listed_tokens_tile[(triton.cdiv(N, tile_n), triton.cdiv(max_tokens, tile_m))](
        x,
        weight,
        scales,
        bias,
        expert_id,
        token_ids,
        expert_num_tokens,
        out,
        N,
        x.shape[1],
        HAS_BIAS=bias is not None,
        TILE_M=tile_m,
        TILE_N=tile_n,
        DEPTH=32 if wide else 64,
        num_warps=8 if tile_m == 128 else 4,
    )
