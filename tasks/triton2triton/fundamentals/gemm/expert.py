"""Matrix product with scales and activation: wide tiles in an order that reuses the cache, chosen by the autotuner.

Rows and columns beyond the end are read from the beginning again instead of masked, and K is masked only where its last
block is not whole.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LINE_BYTES = 128
TILES = (
    # rows, columns, warps, stages
    (64, 64, 4, 4),
    (128, 128, 8, 3),
    (128, 256, 8, 3),
    (16, 64, 4, 4),
    (64, 128, 4, 3),
)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages) for m, n, warps, stages in TILES
    ],
    key=["M", "N", "K"],
)
@triton.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    b_row_stride,
    b_column_stride,
    M,
    N,
    K,
    alpha,
    LEAKY: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Programs are numbered down GROUP tiles before they go on to the right."""
    row_tiles, column_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    first_row = program // (GROUP * column_tiles) * GROUP
    height = tl.minimum(row_tiles - first_row, GROUP)
    within = program % (GROUP * column_tiles)
    rows = (first_row + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_block = a_ptr + (rows % M).to(tl.int64)[:, None] * K + k[None, :]
    b_block = b_ptr + k.to(tl.int64)[:, None] * b_row_stride + (columns % N)[None, :] * b_column_stride
    step = BLOCK_K * b_row_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_block)
            b = tl.load(b_block)
        else:
            a = tl.load(a_block, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_block, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_block += BLOCK_K
        b_block += step
    if a_scales_ptr is not None:
        acc *= tl.load(a_scales_ptr + rows % M)[:, None]
    if b_scales_ptr is not None:
        acc *= tl.load(b_scales_ptr + columns % N)[None, :]
    if LEAKY:
        acc = tl.where(acc > 0, acc, alpha * acc)
    out = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def gemm(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    M, K = a.shape
    N = b.shape[1]
    depth = LINE_BYTES // a.element_size()

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    multiply_tile[grid](
        a,
        b,
        a_scales,
        b_scales,
        out,
        *b.stride(),
        M,
        N,
        K,
        alpha,
        LEAKY=leaky_relu,
        WHOLE_BLOCKS=K % depth == 0,
        BLOCK_K=depth,
        GROUP=8,
    )
