"""expect: wrong_result in heldout-15. Value range: scaled elements are held in float16, which ends at 65504.

Matrix product of microscaling operands: one tile per program, 64 elements along K at a time.

Elements of both formats are exact in float16, and remain so when the power of two of their block multiplies them.
"""

import triton
import triton.language as tl

BLOCK_K = 64


@triton.jit
def load_operand(ptr, scales_ptr, rows, height, start, K, BITS: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """Scaled elements start … start + DEPTH - 1 of every row: (ROWS, DEPTH), float16."""
    row_bytes = K * BITS // 8
    byte = start * BITS // 8 + tl.arange(0, DEPTH * BITS // 8)
    row_mask = (rows < height)[:, None]
    mask = row_mask & (byte < row_bytes)[None, :]
    packed = tl.load(ptr + (rows * row_bytes)[:, None] + byte[None, :], mask=mask, other=0)
    if BITS == 8:
        elements = packed.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        # A byte has two elements, the first in its low half.
        codes = tl.reshape(tl.join(packed & 15, packed >> 4), (ROWS, DEPTH)).to(tl.uint32)
        # Twice the magnitudes of the eight codes are the digits of this number, from the last on.
        digits = tl.full((1, 1), 0xC8643210, tl.uint32)
        magnitude = ((digits >> (codes & 7) * 4) & 15).to(tl.float32) * 0.5
        elements = tl.where((codes & 8) == 8, -magnitude, magnitude)
    block = start // 32 + tl.arange(0, DEPTH // 32)
    scale_mask = row_mask & (block < K // 32)[None, :]
    scales = tl.load(scales_ptr + (rows * (K // 32))[:, None] + block[None, :], mask=scale_mask, other=127)
    factors = tl.exp2(scales.to(tl.float32) - 127.0)
    blocks = tl.reshape(elements, (ROWS, DEPTH // 32, 32)) * factors[:, :, None]
    return tl.reshape(blocks, (ROWS, DEPTH)).to(tl.float16)


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
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = load_operand(a_ptr, a_scales_ptr, rows, M, start, K, A_BITS, BLOCK_M, BLOCK_K)
        b = load_operand(b_ptr, b_scales_ptr, columns, N, start, K, B_BITS, BLOCK_N, BLOCK_K)
        acc = tl.dot(a, b.T, acc)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=inside)


def matmul_mxfp(a, b, a_scales, b_scales, out):
    M, N = out.shape
    K = a_scales.shape[1] * 32
    height, width, warps = (128, 64, 8) if M > 64 else (64, 32, 4)
    multiply_tile[(triton.cdiv(M, height), triton.cdiv(N, width))](
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
        BLOCK_N=width,
        BLOCK_K=BLOCK_K,
        num_warps=warps,
    )
