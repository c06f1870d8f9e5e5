"""SwiGLU and group-wise fp8 quantization of one group of several tokens: 2048 values for four warps.

The baseline's tiles have four tokens. Here a thread has 16 values of gate and of up (eight where a warp has 64 lanes),
in 16-byte loads where groups are aligned. Then eight threads of one warp find a scale of 128 values. Fewer programs
start past an expert's tokens, only to end. One reciprocal for a group replaces a division for each value.
"""

import torch
import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _activate_and_quantize(
    x_ptr,
    expert_num_tokens_ptr,
    q_ptr,
    scales_ptr,
    intermediate,
    max_tokens,
    eps,
    GROUP_SIZE: tl.constexpr,
    LARGEST: tl.constexpr,
    UE8M0: tl.constexpr,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Codes and scales of one group of TOKENS neighbouring tokens of one expert."""
    group = tl.program_id(0)
    first = tl.program_id(1) * TOKENS
    expert = tl.program_id(2).to(tl.int64)
    used = tl.load(expert_num_tokens_ptr + expert)
    if first < used:
        tokens = first + tl.arange(0, TOKENS)
        lanes = tl.arange(0, BLOCK)
        real = tokens < used
        inside = real[:, None] & (lanes < GROUP_SIZE)[None, :]
        rows = (expert * max_tokens + tokens) * intermediate
        columns = (group * GROUP_SIZE + lanes)[None, :]
        gate_ptrs = x_ptr + (2 * rows)[:, None] + columns
        gate = tl.load(gate_ptrs, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(gate_ptrs + intermediate, mask=inside, other=0.0).to(tl.float32)
        h = gate / (1.0 + tl.exp2(gate * -1.4426950408889634)) * up
        scales = tl.maximum(tl.max(tl.abs(h), axis=1), eps) / LARGEST
        if UE8M0:
            # Any bit of the mantissa raises the exponent by one; then the mantissa is cut off.
            bits = scales.to(tl.int32, bitcast=True) + 0x7FFFFF
            scales = (bits & 0x7F800000).to(tl.float32, bitcast=True)
        codes = tl.minimum(tl.maximum(h * (1.0 / scales)[:, None], -LARGEST), LARGEST)
        tl.store(q_ptr + rows[:, None] + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)
        tl.store(scales_ptr + (expert * tl.num_programs(0) + group) * max_tokens + tokens, scales, mask=real)


def silu_mul_fp8_quant_dg(x, expert_num_tokens, q, scales, eps, use_ue8m0):
    num_experts, max_tokens, intermediate = q.shape
    groups = scales.shape[2]
    group_size = intermediate // groups
    block = triton.next_power_of_2(group_size)
    tokens = min(TILE_ELEMENTS // block, triton.next_power_of_2(max_tokens))
    _activate_and_quantize[(groups, triton.cdiv(max_tokens, tokens), num_experts)](
        x,
        expert_num_tokens,
        q,
        scales,
        intermediate,
        max_tokens,
        eps,
        GROUP_SIZE=group_size,
        LARGEST=torch.finfo(q.dtype).max,
        UE8M0=use_ue8m0,
        TOKENS=tokens,
        BLOCK=block,
        num_warps=4,
    )
