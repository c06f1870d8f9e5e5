"""Multimodal rotary embedding in one launch: a program rotates a token's queries and keys, all loaded before any store.

Angles of all three axes are loaded, in vectors, and then chosen from: pairs side by side may belong to different axes.
"""

import triton
import triton.language as tl

TILE_PAIRS = 4096


@triton.jit
def _angles(table_ptr, axis, num_tokens, half, token, pairs):
    """Return the values of one token for pairs, each of its axis, in float32."""
    inside = pairs < half
    time = tl.load(table_ptr + token * half + pairs, mask=inside)
    height = tl.load(table_ptr + (num_tokens + token) * half + pairs, mask=inside)
    width = tl.load(table_ptr + (2 * num_tokens + token) * half + pairs, mask=inside)
    return tl.where(axis == 0, time, tl.where(axis == 1, height, width)).to(tl.float32)[None, :]


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
    token_stride,
    head_dim,
    half,
    INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    pairs = tl.arange(0, PAIRS)
    if INTERLEAVED:
        turn = pairs % 3
        section = tl.where(turn == 1, section_h, half - section_t - section_h)
        axis = tl.where((turn > 0) & (pairs // 3 < section), turn, 0)
    else:
        axis = (pairs >= section_t).to(tl.int32) + (pairs >= section_t + section_h).to(tl.int32)
    cos = _angles(cos_ptr, axis, num_tokens, half, token, pairs)
    sin = _angles(sin_ptr, axis, num_tokens, half, token, pairs)

    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    key_heads = tl.program_id(1) * KEY_HEADS + tl.arange(0, KEY_HEADS)
    mask = (heads < num_heads)[:, None] & (pairs < half)[None, :]
    key_mask = (key_heads < num_kv_heads)[:, None] & (pairs < half)[None, :]
    query = query_ptr + token * token_stride + heads[:, None] * head_dim + pairs[None, :]
    key = key_ptr + token * token_stride + key_heads[:, None] * head_dim + pairs[None, :]
    x = tl.load(query, mask=mask).to(tl.float32)
    y = tl.load(query + half, mask=mask).to(tl.float32)
    key_x = tl.load(key, mask=key_mask).to(tl.float32)
    key_y = tl.load(key + half, mask=key_mask).to(tl.float32)
    dtype = query_ptr.dtype.element_ty
    tl.store(query, (x * cos - y * sin).to(dtype), mask=mask)
    tl.store(query + half, (y * cos + x * sin).to(dtype), mask=mask)
    tl.store(key, (key_x * cos - key_y * sin).to(dtype), mask=key_mask)
    tl.store(key + half, (key_y * cos + key_x * sin).to(dtype), mask=key_mask)


def mrope(query, key, cos, sin, section_t, section_h, interleaved):
    num_tokens, half = cos.shape[1:]
    num_heads, num_kv_heads, head_dim = query.shape[1], key.shape[1], query.shape[2]
    pairs = triton.next_power_of_2(half)
    heads = max(1, min(triton.next_power_of_2(num_heads), TILE_PAIRS // pairs))
    tiles = triton.cdiv(num_heads, heads)
    key_heads = triton.next_power_of_2(triton.cdiv(num_kv_heads, tiles))
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
        head_dim,
        half,
        INTERLEAVED=interleaved,
        HEADS=heads,
        KEY_HEADS=key_heads,
        PAIRS=pairs,
        num_warps=4,
    )
