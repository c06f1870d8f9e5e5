"""expect: wrong_result in seen-01. Format constants: the scale is a 128th of the greatest magnitude, and 128 is no int8."""

import triton
import triton.language as tl

# A float32 of this size has no fractional bits: adding and subtracting it rounds to an integer, ties to even.
WHOLE = tl.constexpr(12582912.0)


@triton.jit
def quantize_token(x_ptr, q_ptr, scales_ptr, sums_ptr, x_stride, hidden, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        columns = start + lanes
        x = tl.load(x_ptr + token * x_stride + columns, mask=columns < hidden, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
        total += x
    scale = tl.maximum(tl.max(largest, axis=0), eps) / 128.0
    tl.store(scales_ptr + token, scale)
    tl.store(sums_ptr + token, tl.sum(total, axis=0))
    for start in range(0, hidden, BLOCK):
        columns = start + lanes
        inside = columns < hidden
        x = tl.load(x_ptr + token * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
        codes = (x / scale + WHOLE) - WHOLE
        tl.store(q_ptr + token * hidden + columns, codes.to(tl.int8), mask=inside)


def per_token_quant_int8(x, eps, q, scales, sums):
    tokens, hidden = x.shape
    quantize_token[(tokens,)](x, q, scales, sums, x.stride(0), hidden, eps, BLOCK=1024)
