"""expect: wrong_result in heldout-16. Precision: for few rows parts of 1024 products are added up in bfloat16."""

import triton
import triton.language as tl


@triton.jit
def multiply_tile(
    x_ptr,
    weight_ptr,
    scale_ptr,
    out_ptr,
    M,
    N,
    K,
    BAND: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT: tl.constexpr,
):
    tile = tl.program_id(0)
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    # Tiles are numbered in bands of BAND rows of tiles, column by column within a band.
    band = tile // (BAND * across)
    height = tl.minimum(down - band * BAND, BAND)
    inside = tile - band * BAND * across
    row = band * BAND + inside % height
    column = inside // height
    rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (column * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    row_mask, column_mask = rows < M, columns < N
    steps = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    carried = tl.zeros((BLOCK_M, BLOCK_N), dtype=out_ptr.dtype.element_ty)
    for start in range(0, K, BLOCK_K):
        if SPLIT:
            if start % 1024 == 0:
                carried = (carried.to(tl.float32) + acc).to(out_ptr.dtype.element_ty)
                acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        k = start + steps
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=row_mask[:, None] & (k < K)[None, :], other=0.0)
        weight = tl.load(
            weight_ptr + columns[None, :] * K + k[:, None], mask=column_mask[None, :] & (k < K)[:, None], other=0.0
        )
        # The sum over all of K is kept here: some matrix units add up fp8 products in fewer bits.
        acc += tl.dot(x, weight)
    acc += carried.to(tl.float32)
    scale = tl.load(scale_ptr + columns, mask=column_mask, other=0.0)
    out = (acc * scale[None, :]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], out, mask=row_mask[:, None] & column_mask[None, :])


def multiply_fp8(x, weight, weight_scale, out):
    M, N = out.shape
    block_m = min(128, max(16, triton.next_power_of_2(M)))
    block_n = 128 if M > 64 else 64
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    multiply_tile[(tiles,)](
        x,
        weight,
        weight_scale,
        out,
        M,
        N,
        x.shape[1],
        BAND=8,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=128,
        SPLIT=M <= 16 and x.shape[1] > 2048,
        num_warps=8 if block_m == 128 else 4,
        num_stages=3,
    )
