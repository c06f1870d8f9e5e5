"""Multimodal rotary embedding in one launch: a program takes tiles of heads of one token, queries first, then keys."""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _rotate_heads(
    x_ptr,
    first_head,
    num_heads,
    token,
    token_stride,
    head_dim,
    half,
    cos,
    sin,
    HEADS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    heads = first_head + tl.arange(0, HEADS)
    pairs = tl.arange(0, PAIRS)
    mask = (heads < num_heads)[:, None] & (pairs < half)[None, :]
    first = x_ptr + token * token_stride + heads[:, None] * head_dim + pairs[None, :]
    x = tl.load(first, mask=mask).to(tl.float32)
    y = tl.load(first + half, mask=mask).to(tl.float32)
    tl.store(first, (x * cos - y * sin).to(x_ptr.dtype.element_ty), mask=mask)
    tl.store(first + half, (y * cos + x * sin).to(x_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _rotate_token(
    query_ptr,
    key_ptr,
    cos_ptr,
    sin_ptr,
    section_t,
    section_h,
    num_tokens,
    num_heads,
    num_kv_heads,
    query_stride,
    key_stride,
    head_dim,
    half,
    INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    pairs = tl.arange(0, PAIRS)
    if INTERLEAVED:
        turn = pairs % 3
        section = tl.where(turn == 1, section_h, half - section_t - section_h)
        axis = tl.where((turn > 0) & (pairs // 3 < section), turn, 0)
    else:
        axis = (pairs >= section_t).to(tl.int32) + (pairs >= section_t + section_h).to(tl.int32)
    # Each pair loads from one axis; those of one axis lie side by side, so that loads stay together.
    places = (axis * num_tokens + token) * half + pairs
    cos = tl.load(cos_ptr + places, mask=pairs < half).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + places, mask=pairs < half).to(tl.float32)[None, :]
    query_tiles = tl.cdiv(num_heads, HEADS)
    if tile < query_tiles:
        first_head = tile * HEADS
        _rotate_heads(query_ptr, first_head, num_heads, token, query_stride, head_dim, half, cos, sin, HEADS, PAIRS)
    else:
        first_head = (tile - query_tiles) * HEADS
        _rotate_heads(key_ptr, first_head, num_kv_heads, token, key_stride, head_dim, half, cos, sin, HEADS, PAIRS)


def mrope(query, key, cos, sin, section_t, section_h, interleaved):
    num_tokens, half = cos.shape[1:]
    num_heads, num_kv_heads, head_dim = query.shape[1], key.shape[1], query.shape[2]
    pairs = triton.next_power_of_2(half)
    heads = max(1, min(triton.next_power_of_2(num_heads), TILE_ELEMENTS // pairs))
    tiles = triton.cdiv(num_heads, heads) + triton.cdiv(num_kv_heads, heads)
    _rotate_token[(num_tokens, tiles)](
        query,
        key,
        cos,
        sin,
        section_t,
        section_h,
        num_tokens,
        num_heads,
        num_kv_heads,
        query.stride(0),
        key.stride(0),
        head_dim,
        half,
        INTERLEAVED=interleaved,
        HEADS=heads,
        PAIRS=pairs,
        num_warps=4,
    )
