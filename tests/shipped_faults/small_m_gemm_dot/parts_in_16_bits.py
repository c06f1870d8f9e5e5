"""expect: wrong_result in heldout-20. Accumulation: parts of split K lie in memory in the dtype of out."""

import torch
import triton
import triton.language as tl


@triton.jit
def columns_of_all_rows(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    weight_row_stride,
    weight_column_stride,
    M,
    N,
    K,
    part_depth,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    m = tl.arange(0, ROWS)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    weight_rows = weight_ptr + n.to(tl.int64)[None, :] * weight_row_stride
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + n, mask=n < N).to(tl.float32)[None, :]
    begin = tl.program_id(1) * part_depth
    end = tl.minimum(begin + part_depth, K)
    for start in range(begin, end, DEPTH):
        k = start + tl.arange(0, DEPTH)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < end)[None, :], other=0.0)
        weight = tl.load(
            weight_rows + k.to(tl.int64)[:, None] * weight_column_stride,
            mask=(k < end)[:, None] & (n < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(x, weight, acc, input_precision="ieee")
    out = acc.to(out_ptr.dtype.element_ty)
    out_ptr += tl.program_id(1).to(tl.int64) * M * N
    tl.store(out_ptr + m.to(tl.int64)[:, None] * N + n[None, :], out, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def add_parts(parts_ptr, bias_ptr, out_ptr, N, size, parts, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    acc = tl.zeros((BLOCK,), tl.float32)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + places % N, mask=inside, other=0.0).to(tl.float32)
    for part in range(parts):
        acc += tl.load(parts_ptr + tl.cast(part, tl.int64) * size + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=inside)


def small_m_gemm_dot(x, weight, bias, out):
    M, K = x.shape
    N = weight.shape[0]
    rows = max(16, triton.next_power_of_2(M))
    # Long sums are split, so that all multiprocessors have work.
    parts = max(1, min(4, K // 256))
    depth = triton.cdiv(triton.cdiv(K, parts), 32) * 32
    parts = triton.cdiv(K, depth)
    sums = out if parts == 1 else torch.empty((parts, M, N), dtype=out.dtype, device=x.device)
    columns_of_all_rows[(triton.cdiv(N, 32), parts)](
        x, weight, bias if parts == 1 else None, sums, *weight.stride(), M, N, K, depth, ROWS=rows, COLUMNS=32, DEPTH=32
    )
    if parts > 1:
        add_parts[(triton.cdiv(M * N, 256),)](sums, bias, out, N, M * N, parts, BLOCK=256)
