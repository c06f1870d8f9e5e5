"""expect: wrong_result in seen-01. Format constants: the scale is the least power of two that leaves no value beyond 448, as in DeepSeek models."""

import triton
import triton.language as tl


@triton.jit
def activate_and_quantize(
    x_ptr,
    q_ptr,
    scales_ptr,
    N,
    row_stride,
    up_offset,
    step,
    alpha,
    limit,
    shift,
    GROUPS: tl.constexpr,
):
    """A gate and the next are step values apart, and an up is up_offset values behind its gate."""
    row = tl.program_id(0).to(tl.int64)
    groups = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    columns = groups[:, None] * 32 + tl.arange(0, 32)[None, :]
    inside = columns < N
    gate_ptrs = x_ptr + row * row_stride + columns * step
    gate = tl.load(gate_ptrs, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_ptrs + up_offset, mask=inside, other=0.0).to(tl.float32)
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    h = gate * tl.sigmoid(alpha * gate) * (up + shift)
    largest = tl.max(tl.abs(h), axis=1)
    # The exponent of a float32 is its bits from 23 on; a zero has the exponent 0.
    scales = tl.maximum(((largest * (1.0 / 448.0)).to(tl.int32, bitcast=True) + 0x7FFFFF >> 23), 0)
    factors = ((254 - scales) << 23).to(tl.float32, bitcast=True)
    codes = tl.minimum(tl.maximum(h * factors[:, None], -448.0), 448.0)
    tl.store(q_ptr + row * N + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scales_ptr + row * (N // 32) + groups, scales.to(tl.uint8), mask=groups * 32 < N)


def swiglu_quant_mxfp8(x, alpha, limit, shift, interleaved, q, scales):
    M, N = q.shape
    activate_and_quantize[(M, triton.cdiv(N, 256))](
        x,
        q,
        scales,
        N,
        x.stride(0),
        1 if interleaved else N,
        2 if interleaved else 1,
        alpha,
        limit,
        shift,
        GROUPS=8,
    )
