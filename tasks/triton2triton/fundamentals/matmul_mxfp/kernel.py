"""Matrix product of microscaling operands: one tile per program, one block of 32 elements at a time.

Elements of both formats are exact in bfloat16, and the scales of a block apply to the whole product of its elements.
"""

import triton
import triton.language as tl


@triton.jit
def load_elements(row_ptr, mask, block, bits: tl.constexpr):
    """Elements 32 * block … 32 * block + 31 of every row: (rows, 32), bfloat16."""
    k = block * 32 + tl.arange(0, 32)
    if bits == 8:
        codes = tl.load(row_ptr[:, None] + k[None, :], mask=mask[:, None], other=0)
        return codes.to(tl.float8e4nv, bitcast=True).to(tl.bfloat16)
    packed = tl.load(row_ptr[:, None] + (k // 2)[None, :], mask=mask[:, None], other=0).to(tl.int32)
    codes = (packed >> (k % 2 * 4)[None, :]) & 15
    exponent = (codes >> 1) & 3
    fraction = (codes & 1) * 0.5
    magnitude = tl.where(exponent == 0, fraction, (1.0 + fraction) * tl.exp2(exponent - 1.0))
    return ((1.0 - (codes >> 3) * 2.0) * magnitude).to(tl.bfloat16)


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
    A_BITS: tl.constexpr,
    B_BITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    blocks = K // 32
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for block in range(blocks):
        a = load_elements(a_ptr + rows * (K * A_BITS // 8), rows < M, block, A_BITS)
        b = load_elements(b_ptr + columns * (K * B_BITS // 8), columns < N, block, B_BITS)
        a_scales = tl.load(a_scales_ptr + rows * blocks + block, mask=rows < M, other=0)
        b_scales = tl.load(b_scales_ptr + columns * blocks + block, mask=columns < N, other=0)
        a_factors = tl.exp2(a_scales.to(tl.float32) - 127.0)
        b_factors = tl.exp2(b_scales.to(tl.float32) - 127.0)
        acc += tl.dot(a, b.T) * a_factors[:, None] * b_factors[None, :]
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=inside)


def matmul_mxfp(a, b, a_scales, b_scales, out):
    M, N = out.shape
    K = a_scales.shape[1] * 32
    height = 128 if M > 64 else 64
    grid = (triton.cdiv(M, height), triton.cdiv(N, 128))
    multiply_tile[grid](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        K,
        A_BITS=a.shape[1] * 8 // K,
        B_BITS=b.shape[1] * 8 // K,
        BLOCK_M=height,
        BLOCK_N=128,
        num_warps=8,
    )
