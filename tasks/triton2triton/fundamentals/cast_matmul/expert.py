"""Matrix product of unlike dtypes: operands are cast once, then multiplied in wide tiles without masks.

The baseline casts in its loop, so that each element of a is cast N / 64 times and each of b M / 64 times. A cast
operand passes through registers and shared memory a second time before the matrix units read it. Tiles are of 64 × 64
with blocks of 16 along K, one matrix instruction a step, and all loads are masked.

Here a first launch casts an operand that many tiles read, in vectors, to whole blocks with zeros at their ends. At 4096
in each dimension this is 50 MB of an operand in fp8, and 8 % of the time of the product at its bound. Tiles of 128 ×
256 read 3 elements for 256 multiply-adds in place of 8, those of 128 × 128 read 4. `_tile` takes the one of least cost
for the shape: tiles of the busiest multiprocessor times multiply-adds and loads of a tile. Programs go down eight tiles
before they go to the right, so that their operands are in the L2 cache together.

A product of few rows reads b once, and casts in registers. A tile of 16 rows does a quarter of the arithmetic of one of
64, and a stage of 128 along K has eight times the bytes of one of 16. The baseline multiplies float32 without matrix
units on NVIDIA; here it is three products of TF32, in steps of as many bytes. Of 32 bits wgmma takes only operands
whose K is contiguous: b is transposed where it is cast. On an H200 a product of that layout took half the time.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8), (128, 128, 8), (64, 128, 4), (64, 64, 4))  # rows, columns, warps
LINE_BYTES = 128  # of a step along K
DEPTH = 64  # the longest step of an operand that is cast first
FEW = 256  # rows or columns of a product whose operands are cast in registers
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def cast_padded(x_ptr, out_ptr, x_stride, rows, columns, padded, BLOCK: tl.constexpr):
    """Cast one row, with zeros behind its end and below the last row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < tl.where(row < rows, columns, 0), other=0.0)
    tl.store(out_ptr + row * padded + column, x.to(out_ptr.dtype.element_ty), mask=column < padded)


@triton.jit
def cast_transposed(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    """Cast a block of rows and columns to columns and rows, with zeros behind the last row."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * x_stride + column[None, :], mask=(row < rows)[:, None] & inside, other=0.0)
    x = x.to(out_ptr.dtype.element_ty).T
    tl.store(out_ptr + column[:, None] * out_stride + row[None, :], x, mask=(row < out_stride)[None, :] & inside.T)


@triton.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    out_ptr,
    a_stride,
    b_row_stride,
    b_column_stride,
    M,
    N,
    K,
    b_columns,
    WHOLE_BLOCKS: tl.constexpr,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Programs are numbered down TOGETHER tiles before they go on to the right."""
    common = out_ptr.dtype.element_ty
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    rows = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the end repeat others and are not stored. Offsets need half the registers of pointers.
    a_offsets = (rows % M)[:, None] * a_stride + k[None, :]
    b_offsets = k[:, None] * b_row_stride + (columns % b_columns)[None, :] * b_column_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_ptr + a_offsets)
            b = tl.load(b_ptr + b_offsets)
        else:
            a = tl.load(a_ptr + a_offsets, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_ptr + b_offsets, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a.to(common), b.to(common), acc, input_precision=PRECISION)
        a_offsets += BLOCK_K
        b_offsets += BLOCK_K * b_row_stride
    out = out_ptr + (rows[:, None] * N + columns[None, :])
    tl.store(out, acc.to(common), mask=(rows < M)[:, None] & (columns < N)[None, :])


def _cast(x, dtype, rows, columns):
    """Return x in dtype and of so many rows and columns, zeros included."""
    if x.dtype == dtype and x.shape == (rows, columns):
        return x
    out = torch.empty((rows, columns), dtype=dtype, device=x.device)
    cast_padded[(rows, triton.cdiv(columns, 2048))](x, out, x.stride(0), *x.shape, columns, BLOCK=2048)
    return out


def _cast_across(x, dtype, rows, columns):
    """Return x transposed, in dtype and of so many columns, zeros included."""
    out = torch.empty((rows, columns), dtype=dtype, device=x.device)
    grid = triton.cdiv(columns, DEPTH), triton.cdiv(rows, DEPTH)
    cast_transposed[grid](x, out, x.stride(0), columns, x.shape[0], rows, BLOCK=DEPTH)
    return out


def _cast_both(a, b, dtype):
    """Return both operands in dtype, with rows of whole vectors and a summed dimension of whole blocks."""
    (M, K), N = a.shape, b.shape[1]
    depth = triton.cdiv(K, DEPTH) * DEPTH
    a = _cast(a, dtype, M, depth)
    if b.stride(0) == 1:
        return a, _cast(b.T, dtype, N, depth).T
    if dtype == torch.float32 and not torch.version.hip:
        return a, _cast_across(b, dtype, N, depth).T
    return a, _cast(b, dtype, depth, triton.cdiv(N, 16) * 16)


def _tile(M, N, dtype):
    """Return the tile's rows, columns and depth, warps and stages."""
    stages = 2 if torch.version.hip else 3
    if M <= 16 and N <= 16:
        return 16, 16, 64, 4, stages
    depth = LINE_BYTES // dtype.itemsize
    if M <= 16:
        return 16, 64, 2 * depth, 4, 2 if torch.version.hip else 4
    if min(M, N) <= FEW:
        return 64, 64, depth, 4, stages
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200
    # Where results are stored by single elements, or operands are split, the widest tile has no registers left.
    tiles = TILES if N % 16 == 0 and dtype != torch.float32 else TILES[1:]
    rows, columns, warps = min(tiles, key=lambda tile: _cost(M, N, *tile[:2], units))
    # Three stages of up to 48 KiB fit an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
    return rows, columns, depth, warps, stages


def _cost(M, N, rows, columns, units):
    tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
    return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))


def cast_matmul(a, b, out):
    M, N = out.shape
    if min(M, N) > FEW:
        a, b = _cast_both(a, b, out.dtype)
    K = a.shape[1]
    rows, columns, depth, warps, stages = _tile(M, N, out.dtype)
    multiply_tile[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        out,
        a.stride(0),
        *b.stride(),
        M,
        N,
        K,
        b.shape[1],
        WHOLE_BLOCKS=K % depth == 0,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=depth,
        num_warps=warps,
        num_stages=stages,
    )
