"""expect: wrong_result in heldout-12. Rounding half up: floor(x + 0.5), where the text says ties to even."""

import triton
import triton.language as tl

@triton.jit
def quantize_group(x_ptr, q_ptr, scales_ptr, x_stride, groups_of_token, group_size, eps, BLOCK: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < group_size
    token = group // groups_of_token
    x_group = x_ptr + token * x_stride + group % groups_of_token * group_size
    x = tl.load(x_group + lanes, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), eps) / 127.0
    codes = tl.floor(x / scale + 0.5)
    codes = tl.minimum(tl.maximum(codes, -128.0), 127.0)
    tl.store(q_ptr + group * group_size + lanes, codes.to(tl.int8), mask=inside)
    tl.store(scales_ptr + group, scale)


def per_token_group_quant_int8(x, eps, q, scales):
    groups = scales.shape[1]
    group_size = x.shape[1] // groups
    block = triton.next_power_of_2(group_size)
    num_warps = max(1, min(8, block // 256))
    quantize_group[(scales.numel(),)](
        x, q, scales, x.stride(0), groups, group_size, eps, BLOCK=block, num_warps=num_warps
    )
