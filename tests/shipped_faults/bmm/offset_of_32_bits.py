"""expect: launch_error. Offsets of 32 bits: the last of more than 2,147,483,648 elements are looked for before the first."""

import triton
import triton.language as tl


@triton.jit
def multiply_tile(
    a_ptr, b_ptr, out_ptr, M, N, K, a_batch_stride, a_row_stride, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    matrix = tl.program_id(0)
    rows = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[:, None]
    columns = (tl.program_id(2) * BLOCK + tl.arange(0, BLOCK))[None, :]
    row_mask = rows < M
    column_mask = columns < N
    a_rows = a_ptr + matrix * a_batch_stride + rows * a_row_stride
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < K
        a = tl.load(a_rows + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        b_rows = b_ptr + (matrix * K + k)[:, None] * N
        b = tl.load(b_rows + columns, mask=inside[:, None] & column_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    out_ptrs = out_ptr + (matrix * M + rows) * N + columns
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


def bmm(a, b, out):
    batch, M, N = out.shape
    wide = a.element_size() == 2
    block = 128 if wide else 64
    grid = (batch, triton.cdiv(M, block), triton.cdiv(N, block))
    multiply_tile[grid](
        a,
        b,
        out,
        M,
        N,
        a.shape[2],
        a.stride(0),
        a.stride(1),
        BLOCK=block,
        BLOCK_K=64 if wide else 32,
        num_warps=8 if wide else 4,
        num_stages=3,
    )
