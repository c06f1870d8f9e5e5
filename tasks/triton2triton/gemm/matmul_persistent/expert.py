"""Linear layer in tiles of 128 × 256 without masks, a program for each, in an order that reuses the cache.

The baseline's programs go along a row of tiles, so that all columns of b pass through the cache for every 128 rows;
here eight rows of tiles share them. Where tiles of 128 × 256 are fewer than a device has room for, they are narrower.
Rows and columns beyond the end are read from others instead of masked. Operands whose rows are no whole vectors are
loaded value by value in the baseline, for every tile. Large ones are copied here to rows of whole blocks, which reads
each value once.

The baseline multiplies float32 without matrix units on NVIDIA, in one program of four warps for each multiprocessor;
here it is three products of TF32, in tiles of up to 128 × 128.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_TILES = 264
WORTH_A_COPY = 256
GROUP = 8


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
):
    """Multiply one tile. Programs go down GROUP tiles before they go on to the right."""
    row_tiles, column_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    upper = tl.program_id(0) // (GROUP * column_tiles) * GROUP
    height = tl.minimum(row_tiles - upper, GROUP)
    within = tl.program_id(0) % (GROUP * column_tiles)
    rows = (upper + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_at = a_ptr + tl.minimum(rows, M - 1).to(tl.int64)[:, None] * K + k[None, :]
    # A remainder of whole vectors keeps columns contiguous, where b is stored by rows.
    b_at = b_ptr + (columns % b_columns).to(tl.int64)[None, :] * b_column_stride + k[:, None] * b_row_stride
    step = BLOCK_K * b_row_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for start in range(0, tl.maximum(K, 1), BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_at)
            b = tl.load(b_at)
        else:
            a = tl.load(a_at, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_at, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_at += BLOCK_K
        b_at += step
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
    K = a.shape[1]
    block_m, block_n, block_k, num_warps = _tile(M, N, a.element_size())
    by_rows = b.stride(1) == 1
    odd = K % 16 or (N % 16 or b.stride(0) % 16 if by_rows else b.stride(1) % 16)
    if odd and a.element_size() == 2 and min(M, N) >= WORTH_A_COPY:
        K = triton.cdiv(K, block_k) * block_k
        a = _padded(a, M, K)
        b = _padded(b, K, triton.cdiv(N, 64) * 64) if by_rows else _padded(b.t(), N, K).t()
    _multiply_tile[(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)](
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
        num_warps=num_warps,
        # 144 of an H200's 227 KiB of shared memory at most. AMD devices have 64 KiB.
        num_stages=2 if torch.version.hip else 3,
    )
