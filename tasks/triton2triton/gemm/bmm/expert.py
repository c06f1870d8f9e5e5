"""Batched matrix product: bands of rows that stay on chip where K is short, wide tiles without masks elsewhere.

Where K is at most 128, the baseline's program of 128 × 128 results loads two blocks of 32 KiB, waits for both and ends:
nothing overlaps its stores, and each row band of a comes from the cache once for every 128 columns. Here a program
loads its rows once and walks along the columns. The loads of the next columns are on their way while one tile is
multiplied and stored. The rows of 512 × 512 products of 128 terms are read once, not four times. Programs of one matrix
follow each other: they read the same columns, and write one stretch of memory, where the baseline writes to as many
places as there are matrices.

Longer 16-bit products have tiles of 128 × 256 where these are enough for a GPU: 85 products for each value that is
loaded, not 64. Rows beyond the end repeat the last one and columns begin again, so that loads need no masks. Strides
and sizes that allow no vectors cost the baseline a load of two bytes for every value of every tile. Large operands of
such strides are copied to rows of whole blocks first, once, which reads each value once.
The baseline multiplies float32 without matrix units on NVIDIA; here it is three products of TF32. Large operands are
split once into upper and lower TF32, with b by columns, as matrix units take TF32. They lie side by side, so that one
product of three times the depth sums all but lower times lower. Else every step splits and transposes in registers.
"""

import torch
import triton
import triton.language as tl

PRECISION = "ieee" if torch.version.hip else "tf32x3"  # of float32: both use matrix units
SHORT = 128
ENOUGH_PROGRAMS = 512
ENOUGH_TILES = 264
WORTH_A_COPY = 256
SPLIT_FROM = 256  # least M, N and K of products of float32 whose operands are split before
GROUP = 8


@triton.jit
def _pad(x_ptr, out_ptr, batch_stride, row_stride, rows, columns, out_rows, out_columns, ROWS: tl.constexpr):
    """Copy one matrix of a batch to a larger one, with zeros behind its rows and columns."""
    matrix = tl.program_id(2).to(tl.int64)
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    c = (tl.program_id(1) * 64 + tl.arange(0, 64))[None, :]
    x = tl.load(x_ptr + matrix * batch_stride + r * row_stride + c, mask=(r < rows) & (c < columns), other=0.0)
    tl.store(out_ptr + (matrix * out_rows + r) * out_columns + c, x, mask=(r < out_rows) & (c < out_columns))


@triton.jit
def _multiply_band(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_batch_stride,
    a_row_stride,
    batch,
    row_tiles,
    span,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Multiply rows of one matrix, whole in K, with one span of columns after the other."""
    programs = tl.num_programs(0) // batch
    matrix = (tl.program_id(0) // programs).to(tl.int64)
    first_row = tl.program_id(0) % programs % row_tiles * BLOCK_M
    first_column = tl.program_id(0) % programs // row_tiles * span
    local = tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    a_ptr += matrix * a_batch_stride + first_row.to(tl.int64) * a_row_stride
    a_rows = tl.minimum(local, M - 1 - first_row)
    a = tl.load(a_ptr + a_rows[:, None] * a_row_stride + k[None, :], mask=(k < K)[None, :], other=0.0)
    b_ptr += matrix * K * N
    out_ptr += (matrix * M + first_row) * N
    rows_inside = (local < M - first_row)[:, None]
    for start in range(first_column, tl.minimum(first_column + span, N), BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        b = tl.load(b_ptr + k[:, None] * N + (columns % N)[None, :], mask=(k < K)[:, None], other=0.0)
        result = tl.dot(a, b).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + local[:, None] * N + columns[None, :], result, mask=rows_inside & (columns < N)[None, :])


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_batch_stride,
    a_row_stride,
    b_batch_stride,
    b_row_stride,
    b_column_stride,
    b_columns,
    batch,
    BY_MATRIX: tl.constexpr,
    PRECISION: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Multiply one tile. Programs go down GROUP tiles before they go on to the right."""
    row_tiles, column_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    if BY_MATRIX:
        matrix = (tl.program_id(0) // (row_tiles * column_tiles)).to(tl.int64)
        tile = tl.program_id(0) % (row_tiles * column_tiles)
    else:
        matrix = (tl.program_id(0) % batch).to(tl.int64)
        tile = tl.program_id(0) // batch
    upper = tile // (GROUP * column_tiles) * GROUP
    height = tl.minimum(row_tiles - upper, GROUP)
    within = tile % (GROUP * column_tiles)
    first_row = (upper + within % height) * BLOCK_M
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    local = tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    a_ptr += matrix * a_batch_stride + first_row.to(tl.int64) * a_row_stride
    a_at = a_ptr + tl.minimum(local, M - 1 - first_row)[:, None] * a_row_stride + k[None, :]
    b_at = b_ptr + matrix * b_batch_stride + k[:, None] * b_row_stride
    b_at += (columns % b_columns)[None, :] * b_column_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_at)
            b = tl.load(b_at)
        else:
            a = tl.load(a_at, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_at, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_at += BLOCK_K
        b_at += BLOCK_K * b_row_stride
    out_ptr += (matrix * M + first_row) * N
    inside = (local < M - first_row)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + local[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=inside)


def _padded(x, rows, columns):
    """Return a copy of the batch whose matrices have so many rows and columns, with zeros behind the values."""
    out = torch.empty((x.shape[0], rows, columns), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 64), x.shape[0])
    _pad[grid](x, out, x.stride(0), x.stride(1), x.shape[1], x.shape[2], rows, columns, ROWS=32)
    return out


@triton.jit
def _split(x_ptr, out_ptr, batch_stride, row_stride, column_stride, rows, columns, padded, LEFT: tl.constexpr):
    """Write (batch, rows, 3, padded): with LEFT lower, upper and upper parts of TF32, else upper, lower and upper."""
    matrix = tl.program_id(2).to(tl.int64)
    i = (tl.program_id(0) * 64 + tl.arange(0, 64)).to(tl.int64)[:, None]
    j = (tl.program_id(1) * 32 + tl.arange(0, 32))[None, :]
    x_ptrs = x_ptr + matrix * batch_stride + i * row_stride + j.to(tl.int64) * column_stride
    x = tl.load(x_ptrs, mask=(i < rows) & (j < columns), other=0.0)
    # TF32 has 13 bits less than float32.
    upper = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    lower = x - upper
    out = out_ptr + (matrix * rows + i) * (3 * padded) + j
    tl.store(out, lower if LEFT else upper, mask=i < rows)
    tl.store(out + padded, upper if LEFT else lower, mask=i < rows)
    tl.store(out + 2 * padded, upper, mask=i < rows)


def _parts(x, left):
    """Return the TF32 parts of the rows of each matrix, three times as long, with zeros up to whole blocks."""
    batch, rows, columns = x.shape
    padded = triton.cdiv(columns, 32) * 32
    out = torch.empty((batch, rows, 3 * padded), dtype=torch.float32, device=x.device)
    _split[(triton.cdiv(rows, 64), padded // 32, batch)](x, out, *x.stride(), rows, columns, padded, LEFT=left)
    return out


def _up_to(size, most):
    return max(16, min(most, triton.next_power_of_2(size)))


def _tile(batch, M, N, item_bytes):
    """Return rows, columns, depth and warps of a tile."""
    if item_bytes == 4:
        large = batch * triton.cdiv(M, 128) * triton.cdiv(N, 128) >= ENOUGH_TILES
        return (128, 128, 32, 8) if large else (64, 64, 32, 4)
    if M >= 128 and N >= 256 and batch * triton.cdiv(M, 128) * triton.cdiv(N, 256) >= ENOUGH_TILES:
        return 128, 256, 64, 8
    block_m = _up_to(M, 128)
    return block_m, 128, 64, 8 if block_m == 128 else 4


def _multiply_short(a, b, out):
    batch, M, N = out.shape
    K = a.shape[2]
    block_m, block_n = _up_to(M, 128), _up_to(N, 64)
    row_tiles, column_tiles = triton.cdiv(M, block_m), triton.cdiv(N, block_n)
    parts = min(column_tiles, triton.cdiv(ENOUGH_PROGRAMS, batch * row_tiles))
    span = triton.cdiv(column_tiles, parts) * block_n
    _multiply_band[(batch * row_tiles * triton.cdiv(N, span),)](
        a,
        b,
        out,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        batch,
        row_tiles,
        span,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=_up_to(K, SHORT),
        num_warps=8 if block_m == 128 else 4,
        num_stages=2 if torch.version.hip else 3,
    )


def bmm(a, b, out):
    batch, M, N = out.shape
    K = a.shape[2]
    if a.element_size() == 2 and K <= SHORT:
        _multiply_short(a, b, out)
        return
    block_m, block_n, block_k, num_warps = _tile(batch, M, N, a.element_size())
    precision = PRECISION
    if a.element_size() == 4 and min(M, N, K) >= SPLIT_FROM and not torch.version.hip:
        a, b = _parts(a, left=True), _parts(b.transpose(1, 2), left=False).transpose(1, 2)
        K, precision = a.shape[2], "tf32"
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    odd = any(step % 16 for step in (a.stride(0), a.stride(1), N))
    if odd and a.element_size() == 2 and min(M, N) >= WORTH_A_COPY:
        K = triton.cdiv(K, block_k) * block_k
        a, b = _padded(a, M, K), _padded(b, K, triton.cdiv(N, 64) * 64)
    _multiply_tile[(batch * tiles,)](
        a,
        b,
        out,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        b.stride(2),
        b.shape[2],
        batch,
        # Matrices with few tiles take turns, so that neighbours read the interleaved rows of a together.
        BY_MATRIX=tiles >= 64,
        PRECISION=precision,
        WHOLE_BLOCKS=K % block_k == 0,
        GROUP=GROUP,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        # 144 of an H200's 227 KiB of shared memory at most. AMD devices have 64 KiB.
        num_stages=2 if torch.version.hip else 3,
    )
