"""expect: wrong_result. Masked values: blocks that are not listed are multiplied by 0, and NaN stays.

Product over listed blocks: one tile of the result per program, which looks up where each block lies.

Where most blocks count, reading all of them in order is faster: those that do not count have their part of a zeroed.
"""

import triton
import triton.language as tl


@triton.jit
def sum_over_listed_blocks(
    a_ptr,
    b_ptr,
    block_ids_ptr,
    out_ptr,
    M,
    N,
    a_stride,
    num_active,
    num_blocks,
    DENSE: tl.constexpr,
    MOST: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if DENSE:
        lanes = tl.arange(0, MOST)
        ids = tl.load(block_ids_ptr + lanes, mask=lanes < num_active, other=-1)
        for block in range(num_blocks):
            k = tl.cast(block, tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
            counts = tl.max((ids == block).to(tl.int32), axis=0)
            a = tl.load(a_ptr + k[None, :] + m[:, None] * a_stride, mask=(m < M)[:, None], other=0.0)
            b = tl.load(b_ptr + n[None, :] + k[:, None] * N, mask=(n < N)[None, :], other=0.0)
            acc += tl.dot(a * counts.to(a.dtype), b, input_precision="ieee")
    else:
        for turn in range(num_active):
            first = tl.load(block_ids_ptr + turn).to(tl.int64) * BLOCK_SIZE
            k = first + tl.arange(0, BLOCK_SIZE)
            a = tl.load(a_ptr + k[None, :] + m[:, None] * a_stride, mask=(m < M)[:, None], other=0.0)
            b = tl.load(b_ptr + n[None, :] + k[:, None] * N, mask=(n < N)[None, :], other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(out_ptr + n[None, :] + m[:, None] * N, acc.to(out_ptr.dtype.element_ty), mask=inside)


def iv_dependent_matmul(a, b, block_ids, out):
    (M, N), (num_blocks, block_size) = out.shape, b.shape[:2]
    num_active = block_ids.numel()
    sum_over_listed_blocks[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a,
        b,
        block_ids,
        out,
        M,
        N,
        a.stride(0),
        num_active,
        num_blocks,
        DENSE=2 * num_active > num_blocks,
        MOST=triton.next_power_of_2(num_active),
        BLOCK_SIZE=block_size,
        BLOCK_M=32,
        BLOCK_N=32,
    )
