"""Block-scaled fp8 product: a program per tile of results walks the blocks of K, whose sums it scales and adds up."""

import triton
import triton.language as tl


@triton.jit
def sum_of_block(a_rows, b_columns, begin, end, row_mask, column_mask, TILE: tl.constexpr, TILE_K: tl.constexpr):
    """Unscaled products of one block of K."""
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(begin, end, TILE_K):
        k = start + tl.arange(0, TILE_K)
        inside = k < end
        a = tl.load(a_rows + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        b = tl.load(b_columns + k[:, None], mask=column_mask & inside[:, None], other=0.0)
        # float16 holds every e4m3 number, and its products add up in full float32 on every device.
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
    return acc


@triton.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    scale_stride,
    block_n,
    block_k,
    TILE: tl.constexpr,
    TILE_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    row_mask = (rows < M)[:, None]
    column_mask = (columns < N)[None, :]
    a_rows = a_ptr + rows[:, None] * K
    b_columns = b_ptr + columns[None, :] * K
    a_scale_ptrs = a_scales_ptr + rows[:, None]
    b_scale_ptrs = b_scales_ptr + (columns // block_n)[None, :] * tl.cdiv(K, block_k)
    result = tl.zeros((TILE, TILE), dtype=tl.float32)
    for begin in range(0, K, block_k):
        end = tl.minimum(begin + block_k, K)
        block_sum = sum_of_block(a_rows, b_columns, begin, end, row_mask, column_mask, TILE, TILE_K)
        a_scales = tl.load(a_scale_ptrs, mask=row_mask, other=0.0)
        b_scales = tl.load(b_scale_ptrs, mask=column_mask, other=0.0)
        result += block_sum * a_scales * b_scales
        a_scale_ptrs += scale_stride
        b_scale_ptrs += 1
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


def w8a8_block_scaled_mm(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    multiply_tile[(triton.cdiv(N, 32), triton.cdiv(M, 32))](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        a.shape[1],
        a_scales.stride(1),
        block_n,
        block_k,
        TILE=32,
        TILE_K=64,
    )
