"""Linear layer in tiles of 128 × 256 without masks, by a persistent grid, in an order that reuses the cache.

The baseline's programs go along a row of tiles, so that all columns of b pass through the cache for every 128 rows;
here eight rows of tiles share them. The loops over tiles and over depth are one, so that operands of the next tile are
on the way while a tile is stored. Where tiles of 128 × 256 are fewer than a device has room for, they are narrower, and
have a program each. Rows and columns beyond the end are read from others instead of masked. Operands whose rows are no
whole vectors are loaded value by value in the baseline, for every tile. Large ones are copied here to rows of whole
blocks, which reads each value once.

The baseline multiplies float32 without matrix units on NVIDIA, in one program of four warps for each multiprocessor;
here it is three products of TF32, in tiles of up to 128 × 128. Operands of long products are split once into upper and
lower TF32, with b by columns, as matrix units take TF32. They lie side by side, so that one product of three times the
depth sums all but lower times lower.
"""

import torch
import triton
import triton.language as tl

PRECISION = "ieee" if torch.version.hip else "tf32x3"  # of float32: both use matrix units
ENOUGH_TILES = 264
WORTH_A_COPY = 256
GROUP = 8
SPLIT_FROM = 512  # least M and N of a product of float32 whose operands are split before
SPLIT_DEPTH = 2048  # least K of such a product


@triton.jit
def _pad(x_ptr, out_ptr, row_stride, rows, columns, out_rows, out_columns):
    """Copy a matrix to a larger one, with zeros behind its rows and columns."""
    r = (tl.program_id(0) * 32 + tl.arange(0, 32)).to(tl.int64)[:, None]
    c = (tl.program_id(1) * 64 + tl.arange(0, 64))[None, :]
    x = tl.load(x_ptr + r * row_stride + c, mask=(r < rows) & (c < columns), other=0.0)
    tl.store(out_ptr + r * out_columns + c, x, mask=(r < out_rows) & (c < out_columns))


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    b_row_stride,
    b_column_stride,
    b_columns,
    WHOLE_BLOCKS: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    ROW_VECTORS: tl.constexpr,
):
    """Multiply every tile that is a grid apart. Tiles are numbered down GROUP rows before they go on to the right."""
    row_tiles, column_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), row_tiles * column_tiles, tl.num_programs(0), flatten=BLOCK_N == 256):
        upper = tile // (GROUP * column_tiles) * GROUP
        height = tl.minimum(row_tiles - upper, GROUP)
        within = tile % (GROUP * column_tiles)
        rows = (upper + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
        a_at = tl.minimum(rows, M - 1).to(tl.int64)[:, None] * K
        # A remainder of whole vectors keeps columns contiguous, where b is stored by rows.
        b_at = (columns % b_columns).to(tl.int64)[None, :] * b_column_stride
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
        for start in range(0, tl.maximum(K, 1), BLOCK_K):
            a_ptrs = a_ptr + a_at + (start + k)[None, :]
            b_offsets = b_at + (start + k).to(tl.int64)[:, None] * b_row_stride
            if ROW_VECTORS:
                # In one loop the compiler no longer sees it in b_at, and would load b without looking ahead.
                b_offsets = tl.max_contiguous(tl.multiple_of(b_offsets, (1, 8)), (1, 8))
            b_ptrs = b_ptr + b_offsets
            if WHOLE_BLOCKS:
                a = tl.load(a_ptrs)
                b = tl.load(b_ptrs)
            else:
                a = tl.load(a_ptrs, mask=(k < K - start)[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=(k < K - start)[:, None], other=0.0)
            acc = tl.dot(a, b, acc, input_precision=PRECISION)
        if bias_ptr is not None:
            acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
        out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def _padded(x, rows, columns):
    """Return a copy of a matrix with so many rows and columns, with zeros behind the values."""
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 64))
    _pad[grid](x, out, x.stride(0), *x.shape, rows, columns)
    return out


@triton.jit
def _split(x_ptr, out_ptr, row_stride, column_stride, rows, columns, padded, LEFT: tl.constexpr):
    """Write (rows, 3, padded): with LEFT lower, upper and upper parts of TF32, else upper, lower and upper."""
    i = (tl.program_id(0) * 64 + tl.arange(0, 64)).to(tl.int64)[:, None]
    j = (tl.program_id(1) * 32 + tl.arange(0, 32))[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * row_stride + j.to(tl.int64) * column_stride, mask=mask, other=0.0)
    # TF32 has 13 bits less than float32.
    upper = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    lower = x - upper
    out = out_ptr + i * (3 * padded) + j
    tl.store(out, lower if LEFT else upper, mask=i < rows)
    tl.store(out + padded, upper if LEFT else lower, mask=i < rows)
    tl.store(out + 2 * padded, upper, mask=i < rows)


def _parts(x, left):
    """Return the TF32 parts of the rows of x, three times as long, with zeros up to whole blocks."""
    rows, columns = x.shape
    padded = triton.cdiv(columns, 32) * 32
    out = torch.empty((rows, 3 * padded), dtype=torch.float32, device=x.device)
    _split[(triton.cdiv(rows, 64), padded // 32)](x, out, *x.stride(), rows, columns, padded, LEFT=left)
    return out


def _tile(M, N, item_bytes):
    """Return rows, columns, depth and warps of a tile."""
    if item_bytes == 4:
        return (128, 128, 32, 8) if triton.cdiv(M, 128) * triton.cdiv(N, 128) >= ENOUGH_TILES // 2 else (64, 64, 32, 4)
    if M >= 128 and triton.cdiv(M, 128) * triton.cdiv(N, 256) >= ENOUGH_TILES:
        return 128, 256, 64, 8
    block_m = max(16, min(128, triton.next_power_of_2(M)))
    return block_m, 128, 64, 8 if block_m == 128 else 4


def matmul_persistent(a, b, bias, out):
    M, N = out.shape
    K, precision = a.shape[1], PRECISION
    if a.element_size() == 4 and min(M, N) >= SPLIT_FROM and K >= SPLIT_DEPTH and not torch.version.hip:
        a, b = _parts(a, left=True), _parts(b.t(), left=False).t()
        K, precision = a.shape[1], "tf32"
    block_m, block_n, block_k, num_warps = _tile(M, N, a.element_size())
    by_rows = b.stride(1) == 1
    odd = K % 16 or (N % 16 or b.stride(0) % 16 if by_rows else b.stride(1) % 16)
    if odd and a.element_size() == 2 and min(M, N) >= WORTH_A_COPY:
        K = triton.cdiv(K, block_k) * block_k
        a = _padded(a, M, K)
        b = _padded(b, K, triton.cdiv(N, 64) * 64) if by_rows else _padded(b.t(), N, K).t()
    programs = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    if block_n == 256 and a.is_cuda:
        # One program of such tiles fits on a multiprocessor. It goes on to its next tile while the last one is stored.
        programs = min(programs, torch.cuda.get_device_properties(a.device).multi_processor_count)
    _multiply_tile[(programs,)](
        a,
        b,
        bias,
        out,
        M,
        N,
        K,
        b.stride(0),
        b.stride(1),
        b.shape[1],
        WHOLE_BLOCKS=K % block_k == 0,
        GROUP=GROUP,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        PRECISION=precision,
        ROW_VECTORS=by_rows and b.shape[1] % 8 == 0 and b.stride(0) % 8 == 0,
        num_warps=num_warps,
        # 176 of an H200's 227 KiB of shared memory at most. AMD devices have 64 KiB.
        num_stages=2 if torch.version.hip else 3,
    )
