"""SwiGLU and group-wise fp8 quantization of batched experts: a program per group, token and expert."""

import torch
import triton
import triton.language as tl


@triton.jit
def activate_and_quantize(
    x_ptr,
    expert_num_tokens_ptr,
    q_ptr,
    scales_ptr,
    intermediate,
    group_size,
    eps,
    LARGEST: tl.constexpr,
    UE8M0: tl.constexpr,
    BLOCK: tl.constexpr,
):
    group = tl.program_id(0)
    token = tl.program_id(1)
    expert = tl.program_id(2).to(tl.int64)
    max_tokens = tl.num_programs(1)
    if token < tl.load(expert_num_tokens_ptr + expert):
        row = expert * max_tokens + token
        lanes = tl.arange(0, BLOCK)
        inside = lanes < group_size
        gate_ptrs = x_ptr + row * 2 * intermediate + group * group_size + lanes
        gate = tl.load(gate_ptrs, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(gate_ptrs + intermediate, mask=inside, other=0.0).to(tl.float32)
        h = gate / (1.0 + tl.exp(-gate)) * up
        scale = tl.maximum(tl.max(tl.abs(h), axis=0), eps) / LARGEST
        if UE8M0:
            # Any bit of the mantissa raises the exponent by one; then the mantissa is cut off.
            bits = scale.to(tl.int32, bitcast=True) + 0x7FFFFF
            scale = (bits & 0x7F800000).to(tl.float32, bitcast=True)
        codes = tl.minimum(tl.maximum(h / scale, -LARGEST), LARGEST)
        tl.store(q_ptr + row * intermediate + group * group_size + lanes, codes.to(q_ptr.dtype.element_ty), mask=inside)
        tl.store(scales_ptr + (expert * tl.num_programs(0) + group) * max_tokens + token, scale)


def silu_mul_fp8_quant_dg(x, expert_num_tokens, q, scales, eps, use_ue8m0):
    num_experts, max_tokens, intermediate = q.shape
    groups = scales.shape[2]
    group_size = intermediate // groups
    activate_and_quantize[(groups, max_tokens, num_experts)](
        x,
        expert_num_tokens,
        q,
        scales,
        intermediate,
        group_size,
        eps,
        LARGEST=torch.finfo(q.dtype).max,
        UE8M0=use_ue8m0,
        BLOCK=triton.next_power_of_2(group_size),
    )
