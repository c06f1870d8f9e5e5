"""Matrix product with scales and activation: wide tiles in an order that reuses the cache, chosen by the autotuner.

Rows and columns beyond the end are read from the beginning again instead of masked, and K is masked only where its last
block is not whole.

float32 is three products of TF32 on NVIDIA. The compiler splits operands for them within the loop, in registers,
between the loads and the matrix units, which is hardly faster than the baseline without matrix units. Operands of long
products that many tiles read are split before, into upper and lower bfloat16, 16 bits together. Rows of a have their
lower, upper and upper halves side by side, columns of b their upper, lower and upper ones. A 16-bit product of three
times the length sums all but the products of two lower halves, which are no larger than the rounding of the halves.
What matrix units lose in sums of 2048 terms is as large.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LINE_BYTES = 128
SPLIT_FROM = 512  # least M and N of a product of float32 whose operands are split before
SPLIT_DEPTH = 2048  # least K of such a product
SPLIT_STEP = 64
SPLIT_TILES = 132  # multiprocessors of an H200
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


@triton.jit
def split(
    x_ptr,
    out_ptr,
    rows,
    columns,
    padded,
    row_stride,
    column_stride,
    LEFT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write (rows, 3, padded) in bfloat16: with LEFT lower, upper and upper halves, else upper, lower and upper."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    x = tl.load(x_ptr + (i[:, None] * row_stride + j[None, :] * column_stride), mask=mask, other=0.0)
    upper = x.to(tl.bfloat16)
    lower = (x - upper.to(tl.float32)).to(tl.bfloat16)
    out = out_ptr + (i.to(tl.int64)[:, None] * (3 * padded) + j[None, :])
    inside = (i < rows)[:, None] & (j < padded)[None, :]
    tl.store(out, lower if LEFT else upper, mask=inside)
    tl.store(out + padded, upper if LEFT else lower, mask=inside)
    tl.store(out + 2 * padded, upper, mask=inside)


@triton.jit
def multiply_split_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    alpha,
    LEAKY: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Multiply a (M, K) by b (N, K) of halves."""
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (GROUP * across) * GROUP
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    rows = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_block = a_ptr + (rows % M).to(tl.int64)[:, None] * K + k[None, :]
    b_block = b_ptr + (columns % N).to(tl.int64)[:, None] * K + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for _ in range(0, tl.maximum(K, 1), BLOCK_K):
        acc = tl.dot(tl.load(a_block), tl.load(b_block).T, acc)
        a_block += BLOCK_K
        b_block += BLOCK_K
    if a_scales_ptr is not None:
        acc *= tl.load(a_scales_ptr + rows % M)[:, None]
    if b_scales_ptr is not None:
        acc *= tl.load(b_scales_ptr + columns % N)[None, :]
    if LEAKY:
        acc = tl.where(acc > 0, acc, alpha * acc)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + (rows.to(tl.int64)[:, None] * N + columns[None, :]), acc, mask=inside)


def _split(x, rows, columns, row_stride, column_stride, left):
    padded = triton.cdiv(columns, SPLIT_STEP) * SPLIT_STEP
    out = torch.empty((rows, 3 * padded), dtype=torch.bfloat16, device=x.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(padded, 64))
    split[grid](x, out, rows, columns, padded, row_stride, column_stride, LEFT=left, ROWS=64, COLUMNS=64)
    return out


def _multiply_split(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    (M, K), N = a.shape, b.shape[1]
    a = _split(a, M, K, *a.stride(), left=True)
    b = _split(b, N, K, b.stride(1), b.stride(0), left=False)
    rows, columns, warps = (128, 128, 8) if M * N > SPLIT_TILES * 64 * 128 else (64, 128, 4)
    multiply_split_tile[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        a.shape[1],
        alpha,
        LEAKY=leaky_relu,
        GROUP=8,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=SPLIT_STEP,
        num_warps=warps,
        num_stages=4,  # of 24 or 32 KiB
    )


def gemm(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    M, K = a.shape
    N = b.shape[1]
    if a.dtype == torch.float32 and min(M, N) >= SPLIT_FROM and K >= SPLIT_DEPTH and not torch.version.hip:
        _multiply_split(a, b, a_scales, b_scales, leaky_relu, alpha, out)
        return
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
