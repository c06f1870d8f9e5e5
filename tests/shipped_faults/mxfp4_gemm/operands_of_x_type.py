"""expect: wrong_result in heldout-30. Range of an operand: both operands take the dtype of x, whose range scales leave in float16."""

import triton
import triton.language as tl


@triton.jit
def quantize(x, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """The quantized values of rows, not their codes: numbers of e2m1 times a power of two are exact in bfloat16."""
    groups = tl.reshape(x.to(tl.float32), (ROWS, DEPTH // 32, 32))
    largest = tl.max(tl.abs(groups), axis=2)
    # The exponent of a float32 is its bits from 23 on.
    exponents = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    power = (exponents << 23).to(tl.float32, bitcast=True)[:, :, None]
    inverse = ((254 - exponents) << 23).to(tl.float32, bitcast=True)[:, :, None]
    v = tl.abs(groups) * inverse
    halves = (v > 0.25).to(tl.float32) + (v >= 0.75) + (v > 1.25) + (v >= 1.75)
    number = 0.5 * halves + (v > 2.5) + (v >= 3.5) + 2.0 * (v > 5.0)
    signed = tl.where(groups < 0, -number, number) * power
    return tl.reshape(signed, (ROWS, DEPTH)).to(tl.bfloat16)


@triton.jit
def dequantize(packed, scales, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    codes = tl.reshape(tl.join(packed & 15, packed >> 4), (ROWS, DEPTH)).to(tl.int32)
    index = codes & 7
    # From index 2 on, a number is a power of two, or one and a half times that.
    number = tl.where(index < 2, index * 0.5, tl.exp2((index // 2 - 1).to(tl.float32)) * (1.0 + (index % 2) * 0.5))
    signed = tl.where(codes > 7, -number, number)
    power = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    values = tl.reshape(signed, (ROWS, DEPTH // 32, 32)) * power[:, :, None]
    return tl.reshape(values, (ROWS, DEPTH)).to(tl.bfloat16)


@triton.jit
def multiply_tile(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_columns = (rows < M)[:, None], (columns < N)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + depth[None, :], mask=in_rows & (depth < K)[None, :], other=0.0)
        pairs = start // 2 + tl.arange(0, BLOCK_K // 2)
        mask = in_columns & (pairs < K // 2)[None, :]
        packed = tl.load(qweight_ptr + columns[:, None] * (K // 2) + pairs[None, :], mask=mask, other=0)
        groups = start // 32 + tl.arange(0, BLOCK_K // 32)
        mask = in_columns & (groups < K // 32)[None, :]
        scales = tl.load(scales_ptr + columns[:, None] * (K // 32) + groups[None, :], mask=mask, other=127)
        weight = dequantize(packed, scales, BLOCK_N, BLOCK_K)
        acc = tl.dot(quantize(x, BLOCK_M, BLOCK_K).to(x.dtype), weight.to(x.dtype).T, acc)
    mask = in_rows & (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)


def mxfp4_gemm(x, qweight, scales, out):
    M, N = out.shape
    height, width = (16, 32) if M <= 16 else (64, 64)
    multiply_tile[(triton.cdiv(M, height), triton.cdiv(N, width))](
        x, qweight, scales, out, M, N, x.shape[1], BLOCK_M=height, BLOCK_N=width, BLOCK_K=64
    )
