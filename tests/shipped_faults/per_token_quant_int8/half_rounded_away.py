"""expect: wrong_result. Rounding half up: ties go away from zero, where the text says to even."""

import triton
import triton.language as tl

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
    scale = tl.maximum(tl.max(largest, axis=0), eps) / 127.0
    tl.store(scales_ptr + token, scale)
    tl.store(sums_ptr + token, tl.sum(total, axis=0))
    for start in range(0, hidden, BLOCK):
        columns = start + lanes
        inside = columns < hidden
        x = tl.load(x_ptr + token * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
        # No magnitude is above 127 scales, so that no code leaves [-127, 127].
        codes = tl.where(x < 0, -tl.floor(0.5 - x / scale), tl.floor(x / scale + 0.5))
        tl.store(q_ptr + token * hidden + columns, codes.to(tl.int8), mask=inside)


def per_token_quant_int8(x, eps, q, scales, sums):
    tokens, hidden = x.shape
    quantize_token[(tokens,)](x, q, scales, sums, x.stride(0), hidden, eps, BLOCK=1024)
