"""SwiGLU and group-wise fp8 quantization of batched experts: a program per group and four tokens of an expert."""

import torch
import triton
import triton.language as tl


@triton.jit
def activate_and_quantize(
    x_ptr,
    expert_num_tokens_ptr,
    q_ptr,
    scales_ptr,
    max_tokens,
    intermediate,
    group_size,
    eps,
    LARGEST: tl.constexpr,
    UE8M0: tl.constexpr,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    group = tl.program_id(0)
    first = tl.program_id(1) * TOKENS
    expert = tl.program_id(2).to(tl.int64)
    num_tokens = tl.load(expert_num_tokens_ptr + expert)
    if first < num_tokens:
        tokens = first + tl.arange(0, TOKENS)
        lanes = tl.arange(0, BLOCK)
        inside = (tokens < num_tokens)[:, None] & (lanes < group_size)[None, :]
        rows = (expert * max_tokens + tokens)[:, None]
        columns = (group * group_size + lanes)[None, :]
        gate_ptrs = x_ptr + rows * 2 * intermediate + columns
        gate = tl.load(gate_ptrs, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(gate_ptrs + intermediate, mask=inside, other=0.0).to(tl.float32)
        h = gate / (1.0 + tl.exp(-gate)) * up
        scale = tl.maximum(tl.max(tl.abs(h), axis=1), eps) / LARGEST
        if UE8M0:
            # Any bit of the mantissa raises the exponent by one; then the mantissa is cut off.
            bits = scale.to(tl.int32, bitcast=True) + 0x7FFFFF
            scale = (bits & 0x7F800000).to(tl.float32, bitcast=True)
        codes = tl.minimum(tl.maximum(h / scale[:, None], -LARGEST), LARGEST)
        tl.store(q_ptr + rows * intermediate + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)
        scale_ptrs = scales_ptr + (expert * tl.num_programs(0) + group) * max_tokens + tokens
        tl.store(scale_ptrs, scale, mask=tokens < num_tokens)


def silu_mul_fp8_quant_dg(x, expert_num_tokens, q, scales, eps, use_ue8m0):
    num_experts, max_tokens, intermediate = q.shape
    groups = scales.shape[2]
    group_size = intermediate // groups
    activate_and_quantize[(groups, triton.cdiv(max_tokens, 4), num_experts)](
        x,
        expert_num_tokens,
        q,
        scales,
        max_tokens,
        intermediate,
        group_size,
        eps,
        LARGEST=torch.finfo(q.dtype).max,
        UE8M0=use_ue8m0,
        TOKENS=4,
        BLOCK=triton.next_power_of_2(group_size),
    )
