"""Group-wise fp8 quantization of a tile of tokens by one group: scales are stored next to each other."""

import torch
import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _quantize_tile(
    x_ptr,
    q_ptr,
    scales_ptr,
    num_tokens,
    hidden,
    group_size,
    scale_stride,
    eps,
    LARGEST: tl.constexpr,
    UE8M0: tl.constexpr,
    TOKENS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    groups = hidden // group_size
    group = tl.program_id(0) % groups
    tokens = tl.program_id(0) // groups * TOKENS + tl.arange(0, TOKENS)
    lanes = tl.arange(0, WIDTH)
    token_mask = tokens < num_tokens
    inside = token_mask[:, None] & (lanes < group_size)[None, :]
    offsets = tokens.to(tl.int64)[:, None] * hidden + (group * group_size + lanes)[None, :]
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    scales = tl.maximum(tl.max(tl.abs(x), axis=1), eps) / LARGEST
    if UE8M0:
        bits = scales.to(tl.int32, bitcast=True) + 0x7FFFFF
        scales = (bits & 0x7F800000).to(tl.float32, bitcast=True)
    # One division a token and group; a product may then exceed LARGEST by a last bit.
    codes = tl.minimum(tl.maximum(x * (1.0 / scales)[:, None], -LARGEST), LARGEST)
    tl.store(q_ptr + offsets, codes.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scales_ptr + group.to(tl.int64) * scale_stride + tokens, scales, mask=token_mask)


def per_token_group_quant_fp8_colmajor(x, eps, use_ue8m0, q, scales):
    num_tokens, hidden = x.shape
    groups = scales.shape[1]
    group_size = hidden // groups
    width = triton.next_power_of_2(group_size)
    tokens = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(num_tokens))
    _quantize_tile[(triton.cdiv(num_tokens, tokens) * groups,)](
        x,
        q,
        scales,
        num_tokens,
        hidden,
        group_size,
        scales.stride(1),
        eps,
        LARGEST=torch.finfo(q.dtype).max,
        UE8M0=use_ue8m0,
        TOKENS=tokens,
        WIDTH=width,
        num_warps=min(8, max(1, tokens * width // 512)),
    )
