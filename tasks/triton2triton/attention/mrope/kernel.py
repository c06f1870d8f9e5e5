"""Multimodal rotary embedding in place: one program per token loads its angles once, for all query and key heads."""

import triton
import triton.language as tl

TILE_PAIRS = 2048


@triton.jit
def rotate_heads(x_ptr, num_heads, head_dim, half, cos, sin, HEADS: tl.constexpr, PAIRS: tl.constexpr):
    pairs = tl.arange(0, PAIRS)
    for start in range(0, num_heads, HEADS):
        heads = start + tl.arange(0, HEADS)
        inside = (heads < num_heads)[:, None] & (pairs < half)[None, :]
        first = x_ptr + heads[:, None] * head_dim + pairs[None, :]
        second = first + half
        x = tl.load(first, mask=inside).to(tl.float32)
        y = tl.load(second, mask=inside).to(tl.float32)
        tl.store(second, (y * cos + x * sin).to(x_ptr.dtype.element_ty), mask=inside)
        tl.store(first, (x * cos - y * sin).to(x_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rotate_token(
    query_ptr,
    key_ptr,
    cos_ptr,
    sin_ptr,
    section_t,
    section_h,
    num_tokens,
    num_heads,
    num_kv_heads,
    token_stride,
    head_dim,
    half,
    INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    pairs = tl.arange(0, PAIRS)
    if INTERLEAVED:
        section_w = half - section_t - section_h
        height = (pairs % 3 == 1) & (pairs // 3 < section_h)
        width = (pairs % 3 == 2) & (pairs // 3 < section_w)
        axis = tl.where(height, 1, tl.where(width, 2, 0))
    else:
        axis = tl.where(pairs < section_t, 0, tl.where(pairs < section_t + section_h, 1, 2))
    angles = (axis * num_tokens + token) * half + pairs
    cos = tl.load(cos_ptr + angles, mask=pairs < half).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + angles, mask=pairs < half).to(tl.float32)[None, :]
    rotate_heads(query_ptr + token * token_stride, num_heads, head_dim, half, cos, sin, HEADS, PAIRS)
    rotate_heads(key_ptr + token * token_stride, num_kv_heads, head_dim, half, cos, sin, HEADS, PAIRS)


def mrope(query, key, cos, sin, section_t, section_h, interleaved):
    num_tokens, half = cos.shape[1:]
    num_heads, head_dim = query.shape[1:]
    pairs = triton.next_power_of_2(half)
    rotate_token[(num_tokens,)](
        query,
        key,
        cos,
        sin,
        section_t,
        section_h,
        num_tokens,
        num_heads,
        key.shape[1],
        query.stride(0),
        head_dim,
        half,
        INTERLEAVED=interleaved,
        HEADS=max(1, min(triton.next_power_of_2(num_heads), TILE_PAIRS // pairs)),
        PAIRS=pairs,
    )
