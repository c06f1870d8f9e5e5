"""Group-wise fp8 quantization with scales by columns: a program per group, group after group of each token.

A short group has one warp: four would share 128 values and wait for each other twice.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def quantize_group(
    x_ptr,
    q_ptr,
    scales_ptr,
    groups_of_token,
    group_size,
    scale_stride,
    eps,
    LARGEST: tl.constexpr,
    UE8M0: tl.constexpr,
    BLOCK: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < group_size
    x = tl.load(x_ptr + index * group_size + lanes, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), eps) / LARGEST
    if UE8M0:
        # Any bit of the mantissa raises the exponent by one; then the mantissa is cut off.
        bits = scale.to(tl.int32, bitcast=True) + 0x7FFFFF
        scale = (bits & 0x7F800000).to(tl.float32, bitcast=True)
    codes = tl.minimum(tl.maximum(x / scale, -LARGEST), LARGEST)
    tl.store(q_ptr + index * group_size + lanes, codes.to(q_ptr.dtype.element_ty), mask=inside)
    token = index // groups_of_token
    group = index % groups_of_token
    tl.store(scales_ptr + group * scale_stride + token, scale)


def per_token_group_quant_fp8_colmajor(x, eps, use_ue8m0, q, scales):
    groups = scales.shape[1]
    group_size = x.shape[1] // groups
    block = triton.next_power_of_2(group_size)
    quantize_group[(scales.numel(),)](
        x,
        q,
        scales,
        groups,
        group_size,
        scales.stride(1),
        eps,
        LARGEST=torch.finfo(q.dtype).max,
        UE8M0=use_ue8m0,
        BLOCK=block,
        num_warps=max(1, min(8, block // 256)),
    )
