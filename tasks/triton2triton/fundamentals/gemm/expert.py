"""Matrix product with scales and activation: wide tiles in an order that reuses the cache, chosen by the autotuner.

Rows and columns beyond the end are read from the beginning again instead of masked, and K is masked only where its last
block is not whole.

float32 is three products of TF32 on NVIDIA. The compiler splits operands for them within the loop, in registers,
between the loads and the matrix units, which is slower than the baseline's products without matrix units. Operands that
many tiles read are split before, so that all four parts go to the matrix units through shared memory alone. b is turned
then, as TF32 has both operands along the summed dimension there.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LINE_BYTES = 128
SPLIT_FROM = 512  # least dimension of a product of float32 whose operands are split before
SPLIT_STEP = 32
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
def split(x_ptr, out_ptr, rows, columns, padded, row_stride, column_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Write (2, rows, padded): what TF32 holds of x, and the rest; zeros behind the end of rows."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    x = tl.load(x_ptr + (i[:, None] * row_stride + j[None, :] * column_stride), mask=mask, other=0.0)
    high = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    out = out_ptr + (i[:, None] * padded + j[None, :])
    inside = (i < rows)[:, None] & (j < padded)[None, :]
    tl.store(out, high, mask=inside)
    tl.store(out + rows * padded, x - high, mask=inside)


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
    """Multiply a (2, M, K) by b (2, N, K), each in two parts of TF32, but for the product of both rests."""
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (GROUP * across) * GROUP
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    rows = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    a_offsets = (rows % M)[:, None] * K + tl.arange(0, BLOCK_K)[None, :]
    b_offsets = (columns % N)[:, None] * K + tl.arange(0, BLOCK_K)[None, :]
    a_rest_ptr, b_rest_ptr = a_ptr + M * K, b_ptr + N * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + a_offsets)
        b = tl.load(b_ptr + b_offsets)
        a_rest = tl.load(a_rest_ptr + a_offsets)
        b_rest = tl.load(b_rest_ptr + b_offsets)
        acc = tl.dot(a_rest, b.T, acc, input_precision="tf32")
        acc = tl.dot(a, b_rest.T, acc, input_precision="tf32")
        acc = tl.dot(a, b.T, acc, input_precision="tf32")
        a_offsets += BLOCK_K
        b_offsets += BLOCK_K
    if a_scales_ptr is not None:
        acc *= tl.load(a_scales_ptr + rows % M)[:, None]
    if b_scales_ptr is not None:
        acc *= tl.load(b_scales_ptr + columns % N)[None, :]
    if LEAKY:
        acc = tl.where(acc > 0, acc, alpha * acc)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + (rows[:, None] * N + columns[None, :]), acc, mask=inside)


def _split(x, rows, columns, row_stride, column_stride):
    padded = triton.cdiv(columns, SPLIT_STEP) * SPLIT_STEP
    out = torch.empty((2, rows, padded), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(padded, 64))
    split[grid](x, out, rows, columns, padded, row_stride, column_stride, ROWS=64, COLUMNS=64)
    return out


def _multiply_split(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    (M, K), N = a.shape, b.shape[1]
    a = _split(a, M, K, *a.stride())
    b = _split(b, N, K, b.stride(1), b.stride(0))
    rows, columns, warps = (128, 128, 8) if M * N > SPLIT_TILES * 64 * 128 else (64, 128, 4)
    multiply_split_tile[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        a.shape[2],
        alpha,
        LEAKY=leaky_relu,
        GROUP=8,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=SPLIT_STEP,
        num_warps=warps,
        num_stages=3,  # of 48 or 64 KiB
    )


def gemm(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    M, K = a.shape
    N = b.shape[1]
    if a.dtype == torch.float32 and min(M, N, K) >= SPLIT_FROM and not torch.version.hip:
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
