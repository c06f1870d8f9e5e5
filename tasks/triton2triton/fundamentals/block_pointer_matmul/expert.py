"""General matrix product in place, in wide tiles without masks, in an order that reuses the cache.

The baseline's tile of 32 × 64 reads 3 operand elements for 64 multiply-adds and has too few rows for the matrix units
that work on shared memory (wgmma needs 64). Blocks of 16 along K make a step of one instruction, and all loads are
masked. It also reads c where beta is 0.

Here a tile of 128 × 256 reads 3 elements for 256 multiply-adds, and one of 128 × 128 reads 4 for 256. `_tile` takes the
one of least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and loads of a tile. Rows and
columns beyond the end repeat others and are not stored, so that only a last, partial block of K needs a mask. Programs
go down eight tiles before they go to the right, so that their operands are in the L2 cache together.

Rows that are no multiple of 16 elements allow loads of one element only, which pass through registers. Operands of 16
bits are copied into whole blocks then, if many tiles read them: the copies are a small part of the product's bytes.

The baseline multiplies float32 without matrix units on NVIDIA. Here it is three products of TF32, in steps of as many
bytes. Of 32 bits wgmma takes only operands whose K is contiguous, so that b is transposed first: on an H200 a product
of that layout took half the time of one without. Results of few rows and columns have the smallest tile and blocks of
64, since their time is the number of steps.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8), (128, 128, 8), (64, 128, 4), (64, 64, 4))  # rows, columns, warps
LINE_BYTES = 128  # of a step along K
FEW = 256  # rows or columns of a product whose operands are not worth a copy
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def copy_padded(x_ptr, out_ptr, x_stride, rows, columns, padded, BLOCK: tl.constexpr):
    """Copy one row, with zeros behind its end and below the last row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < tl.where(row < rows, columns, 0), other=0.0)
    tl.store(out_ptr + row * padded + column, x, mask=column < padded)


@triton.jit
def copy_transposed(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    """Store a block of rows and columns as columns and rows."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * x_stride + column[None, :], mask=inside)
    tl.store(out_ptr + column[:, None] * out_stride + row[None, :], x.T, mask=inside.T)


@triton.jit
def update_tile(
    a_ptr,
    b_ptr,
    c_ptr,
    alpha,
    beta,
    M,
    N,
    K,
    b_columns,
    a_stride,
    b_row_stride,
    b_column_stride,
    c_stride,
    ADD: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Programs are numbered down TOGETHER tiles before they go on to the right."""
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    m = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Offsets have 32 bits, and need half the registers of pointers.
    a_offsets = (m % M)[:, None] * a_stride + k[None, :]
    b_offsets = k[:, None] * b_row_stride + (n % b_columns)[None, :] * b_column_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_ptr + a_offsets)
            b = tl.load(b_ptr + b_offsets)
        else:
            a = tl.load(a_ptr + a_offsets, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_ptr + b_offsets, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_offsets += BLOCK_K
        b_offsets += BLOCK_K * b_row_stride
    acc *= alpha
    c_block = c_ptr + (m[:, None] * c_stride + n[None, :])
    inside = (m < M)[:, None] & (n < N)[None, :]
    if ADD:
        acc += beta * tl.load(c_block, mask=inside, other=0.0).to(tl.float32)
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), mask=inside)


def _tile(M, N, dtype, vectors):
    """Return the tile's rows, columns and depth, and warps."""
    if M <= 16 and N <= 16:
        return 16, 16, 64, 4
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200
    # Where c is read by single elements, or operands are split, the widest tile has no registers left.
    tiles = TILES if vectors and dtype != torch.float32 else TILES[1:]
    best = min(tiles, key=lambda tile: _cost(M, N, *tile[:2], units))
    return *best[:2], LINE_BYTES // dtype.itemsize, best[2]


def _cost(M, N, rows, columns, units):
    tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
    return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))


def _padded(x, rows, columns):
    """Return a copy of x with zeros to so many rows and columns."""
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    copy_padded[(rows, triton.cdiv(columns, 2048))](x, out, x.stride(0), *x.shape, columns, BLOCK=2048)
    return out


def _transposed(x):
    """Return x in a layout in which its first dimension is contiguous, from whole vectors on."""
    (rows, columns), BLOCK = x.shape, 64
    out = torch.empty((columns, triton.cdiv(rows, 16) * 16), dtype=x.dtype, device=x.device)
    grid = triton.cdiv(rows, BLOCK), triton.cdiv(columns, BLOCK)
    copy_transposed[grid](x, out, x.stride(0), out.stride(0), rows, columns, BLOCK=BLOCK)
    return out[:, :rows].T


def block_pointer_matmul(a, b, c, alpha, beta):
    (M, K), N = a.shape, b.shape[1]
    vectors = all(size % 16 == 0 for size in (N, K, a.stride(0), b.stride(0)))
    large = min(M, N) > FEW
    if not vectors and a.element_size() == 2 and large:
        K = triton.cdiv(K, 64) * 64
        a, b = _padded(a, M, K), _padded(b, K, triton.cdiv(N, 16) * 16)
    if b.dtype == torch.float32 and large and not torch.version.hip:
        b = _transposed(b)
    rows, columns, depth, warps = _tile(M, N, a.dtype, vectors and c.stride(0) % 16 == 0)
    update_tile[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        c,
        alpha,
        beta,
        M,
        N,
        K,
        b.shape[1],
        a.stride(0),
        *b.stride(),
        c.stride(0),
        ADD=beta != 0,
        WHOLE_BLOCKS=K % depth == 0,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=depth,
        num_warps=warps,
        # Three stages of up to 48 KiB fit an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
