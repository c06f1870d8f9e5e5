"""Group-wise fp8 quantization: a program per token and group."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantize_group(
    x_ptr, q_ptr, scales_ptr, token_stride, hidden, group_size, eps, LARGEST: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < group_size
    columns = group * group_size + lanes
    x = tl.load(x_ptr + token * token_stride + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), eps) / LARGEST
    # A quotient may come out a last bit above LARGEST, which has no code.
    codes = tl.minimum(tl.maximum(x / scale, -LARGEST), LARGEST)
    tl.store(q_ptr + token * hidden + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scales_ptr + token * tl.num_programs(1) + group, scale)


def per_token_group_quant_fp8(x, eps, q, scales):
    tokens, hidden = x.shape
    groups = scales.shape[1]
    group_size = hidden // groups
    block = triton.next_power_of_2(group_size)
    largest = torch.finfo(q.dtype).max
    quantize_group[(tokens, groups)](x, q, scales, x.stride(0), hidden, group_size, eps, LARGEST=largest, BLOCK=block)
