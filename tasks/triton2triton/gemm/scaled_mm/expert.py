"""Product of quantized matrices without masks: fp8 in lower tiles than the baseline, int8 in wider ones.

Hopper's units keep 14 bits of a sum of fp8 products, so 128 products are added up there and then added to an
accumulator of float32. The baseline does that in tiles of 128 × 128 results. Here three programs of 64 × 128 results
fit an H200's multiprocessor, so that one adds while another multiplies. Programs go down several tiles before they go
on to the right, so that both operands stay in the cache. A float32 output keeps float16.

int8 sums need no second accumulator. Where tiles of 128 × 256 are enough for a GPU, each value that is loaded has 85
products in place of 64. All loops have no masks: rows and columns beyond the end repeat the last one, and codes whose
rows are not whole vectors are copied to rows of whole blocks first. The baseline loads such codes byte by byte.
"""

import torch
import triton
import triton.language as tl

DEPTH = 128
ENOUGH_TILES = 264
WORTH_A_COPY = 256


@triton.jit
def _pad_rows(x_ptr, out_ptr, K, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + row * width + k, tl.load(x_ptr + row * K + k, mask=k < K, other=0), mask=k < width)


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    a_scale_step,
    b_scale_step,
    WHOLE_BLOCKS: tl.constexpr,
    WIDEN: tl.constexpr,
    SUM: tl.constexpr,
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
    first_row = (upper + within % height) * BLOCK_M
    first_column = within // height * BLOCK_N
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = first_column + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Offsets within a tile have 32 bits, and need half the registers of pointers.
    a_offsets = (tl.minimum(rows, M - 1) - first_row)[:, None] * K + k[None, :]
    b_offsets = (tl.minimum(columns, N - 1) - first_column)[None, :] * K + k[:, None]
    a_ptr += first_row.to(tl.int64) * K
    b_ptr += first_column.to(tl.int64) * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUM)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_ptr + start + a_offsets)
            b = tl.load(b_ptr + start + b_offsets)
        else:
            a = tl.load(a_ptr + start + a_offsets, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_ptr + start + b_offsets, mask=(k < K - start)[:, None], other=0.0)
        if WIDEN:
            acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
        elif acc.dtype == tl.int32:
            acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        else:
            acc += tl.dot(a, b)
    a_scales = tl.load(a_scales_ptr + tl.minimum(rows, M - 1) * a_scale_step)
    b_scales = tl.load(b_scales_ptr + tl.minimum(columns, N - 1) * b_scale_step)
    result = acc.to(tl.float32) * a_scales[:, None] * b_scales[None, :]
    if bias_ptr is not None:
        result += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def _padded(x, width):
    """Return a copy of rows of codes (rows, K), with zeros up to width."""
    rows, K = x.shape
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    _pad_rows[(rows, triton.cdiv(width, 2048))](x.view(torch.uint8), out.view(torch.uint8), K, width, BLOCK=2048)
    return out


def _tile(M, N, codes, widen):
    """Return rows, columns, depth, warps and stages of a tile."""
    block_m = max(16, min(128, triton.next_power_of_2(M)))
    if widen:
        return block_m, 128, 64, 8 if block_m == 128 else 4, 3
    if block_m == 16:
        # The weight bounds the time: long stretches of it in flight.
        return 16, 64, 256, 4, 3
    if codes != torch.int8:
        return min(64, block_m), 128, DEPTH, 4, 3
    if block_m == 128 and triton.cdiv(M, 128) * triton.cdiv(N, 256) >= ENOUGH_TILES:
        return 128, 256, DEPTH, 8, 4
    return block_m, 128, DEPTH, 8 if block_m == 128 else 4, 4


def scaled_mm(a, b, a_scales, b_scales, bias, out):
    M, N = out.shape
    K = a.shape[1]
    codes = a.dtype
    widen = codes != torch.int8 and out.dtype == torch.float32
    block_m, block_n, block_k, num_warps, num_stages = _tile(M, N, codes, widen)
    weight = b.t()
    if K % 16 and min(M, N) >= WORTH_A_COPY:
        width = triton.cdiv(K, block_k) * block_k
        a, weight, K = _padded(a, width), _padded(weight, width), width
    _multiply_tile[(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)](
        a,
        weight,
        a_scales,
        b_scales,
        bias,
        out,
        M,
        N,
        K,
        # One scale for all is read again and again from the same place.
        0 if a_scales.numel() == 1 else 1,
        0 if b_scales.numel() == 1 else 1,
        WHOLE_BLOCKS=K % block_k == 0,
        WIDEN=widen,
        SUM=tl.int32 if codes == torch.int8 else tl.float32,
        GROUP=1024 // max(64, block_m),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        # 192 of an H200's 227 KiB of shared memory at most. AMD devices have 64 KiB.
        num_stages=2 if torch.version.hip else num_stages,
    )
