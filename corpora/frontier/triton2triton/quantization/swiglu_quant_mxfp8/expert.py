"""Clamped SwiGLU and MXFP8 quantization with wide loads: a thread has 8 gates and 8 ups, also where they alternate.

Programs take 64 groups, of several rows where rows are short: division by a constant finds the row. Alternating values
are loaded as they lie and split in registers.
"""

import triton
import triton.language as tl


@triton.jit
def _activate_and_quantize(
    x_ptr,
    q_ptr,
    scales_ptr,
    total_groups,
    row_groups,
    row_stride,
    alpha,
    limit,
    shift,
    INTERLEAVED: tl.constexpr,
    GROUPS: tl.constexpr,
):
    groups = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    present = groups < total_groups
    rows = (groups // row_groups).to(tl.int64)
    columns = (groups % row_groups) * 32
    lanes = tl.arange(0, 32)
    if INTERLEAVED:
        both = tl.arange(0, 64)
        ptrs = x_ptr + (rows * row_stride + 2 * columns)[:, None] + both[None, :]
        pairs = tl.load(ptrs, mask=present[:, None], other=0.0)
        gate, up = tl.split(tl.reshape(pairs, (GROUPS, 32, 2)))
    else:
        ptrs = x_ptr + (rows * row_stride + columns)[:, None] + lanes[None, :]
        gate = tl.load(ptrs, mask=present[:, None], other=0.0)
        up = tl.load(ptrs + row_groups * 32, mask=present[:, None], other=0.0)
    gate = tl.minimum(gate.to(tl.float32), limit)
    up = tl.minimum(tl.maximum(up.to(tl.float32), -limit), limit)
    h = gate * (up + shift) / (1.0 + tl.exp2(gate * (-1.4426950408889634 * alpha)))
    largest = tl.max(tl.abs(h), axis=1)
    scales = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) - 8, 0)
    factors = ((254 - scales) << 23).to(tl.float32, bitcast=True)
    codes = tl.minimum(tl.maximum(h * factors[:, None], -448.0), 448.0)
    out = groups.to(tl.int64)[:, None] * 32 + lanes[None, :]
    tl.store(q_ptr + out, codes.to(q_ptr.dtype.element_ty), mask=present[:, None])
    tl.store(scales_ptr + groups, scales.to(tl.uint8), mask=present)


def swiglu_quant_mxfp8(x, alpha, limit, shift, interleaved, q, scales):
    row_groups = scales.shape[1]
    total_groups = scales.numel()
    _activate_and_quantize[(triton.cdiv(total_groups, 64),)](
        x,
        q,
        scales,
        total_groups,
        row_groups,
        x.stride(0),
        alpha,
        limit,
        shift,
        INTERLEAVED=interleaved,
        GROUPS=64,
        num_warps=8,
    )
