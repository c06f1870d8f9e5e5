"""Norm and rotation of query and key heads with the cache write: several heads of one kind a program.

What the baseline wastes, and what is done instead:

- A program of one head loads weights, cosines and sines for 128 values. Here they serve up to 16 heads of a token.
- One warp moves 256 bytes at a time. Here tiles of 4096 values keep more loads under way, 16 bytes a thread.
- It reads each row and the weights a second time, for the partners of pairs. Here a head is read once as halves or as
  pairs, whose sizes are constants.
"""

import torch
import triton
import triton.language as tl

TILE_VALUES = 2048 if torch.version.hip else 4096


@triton.jit
def _load_weight(weight_ptr, dims, OFFSET_WEIGHT: tl.constexpr):
    weight = tl.load(weight_ptr + dims).to(tl.float32)
    return weight + 1.0 if OFFSET_WEIGHT else weight


@triton.jit
def _prepare_heads(
    source_ptr,
    weight_ptr,
    cos_sin_row,
    target_ptr,
    eps,
    heads,
    present,
    OFFSET_WEIGHT: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr,
    ROTARY: tl.constexpr,
    DIM: tl.constexpr,
):
    """Normalise and rotate HEADS heads in a row, of which `present` are stored."""
    dims = tl.arange(0, DIM)
    mask = present[:, None]
    places = heads[:, None] * DIM + dims[None, :]
    x = tl.load(source_ptr + places, mask=mask, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, axis=1) / DIM + eps)
    y = x * inverse[:, None] * _load_weight(weight_ptr, dims, OFFSET_WEIGHT)[None, :]
    HALF: tl.constexpr = ROTARY // 2
    if INTERLEAVED:
        # Pairs past the rotated ones are turned by 0.
        pairs = tl.arange(0, DIM // 2)
        cos = tl.load(cos_sin_row + pairs, mask=pairs < HALF, other=1.0)[None, :]
        sin = tl.load(cos_sin_row + HALF + pairs, mask=pairs < HALF, other=0.0)[None, :]
        first, second = tl.split(tl.reshape(y, (HEADS, DIM // 2, 2)))
        result = tl.reshape(tl.join(first * cos - second * sin, second * cos + first * sin), (HEADS, DIM))
        tl.store(target_ptr + places, result.to(target_ptr.dtype.element_ty), mask=mask)
    elif ROTARY == DIM:
        pairs = tl.arange(0, DIM // 2)
        cos = tl.load(cos_sin_row + pairs)[None, :]
        sin = tl.load(cos_sin_row + HALF + pairs)[None, :]
        first, second = tl.split(tl.permute(tl.reshape(y, (HEADS, 2, DIM // 2)), (0, 2, 1)))
        places = heads[:, None] * DIM + pairs[None, :]
        result = (first * cos - second * sin).to(target_ptr.dtype.element_ty)
        tl.store(target_ptr + places, result, mask=mask)
        result = (second * cos + first * sin).to(target_ptr.dtype.element_ty)
        tl.store(target_ptr + places + HALF, result, mask=mask)
    else:
        # The partners of a partial rotation are read again, from the first cache.
        rotated = dims < ROTARY
        is_first = dims < HALF
        partners = tl.where(rotated, tl.where(is_first, dims + HALF, dims - HALF), dims)
        other = tl.load(source_ptr + heads[:, None] * DIM + partners[None, :], mask=mask, other=0.0).to(tl.float32)
        other *= inverse[:, None] * _load_weight(weight_ptr, partners, OFFSET_WEIGHT)[None, :]
        pairs = tl.where(is_first, dims, dims - HALF)
        cos = tl.load(cos_sin_row + pairs, mask=rotated, other=1.0)
        sin = tl.load(cos_sin_row + HALF + pairs, mask=rotated, other=0.0)
        sin = tl.where(is_first, -sin, sin)
        result = y * cos[None, :] + other * sin[None, :]
        tl.store(target_ptr + places, result.to(target_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _prepare_token(
    qkv_ptr,
    query_weight_ptr,
    key_weight_ptr,
    cos_sin_ptr,
    positions_ptr,
    slot_mapping_ptr,
    key_cache_ptr,
    value_cache_ptr,
    query_ptr,
    eps,
    qkv_stride,
    OFFSET_WEIGHT: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    ROTARY: tl.constexpr,
    DIM: tl.constexpr,
):
    """Some query heads of a token, or some key and value heads."""
    QUERY_TILES: tl.constexpr = (NUM_HEADS + HEADS - 1) // HEADS
    token = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    row_ptr = qkv_ptr + token * qkv_stride
    cos_sin_row = cos_sin_ptr + tl.load(positions_ptr + token) * ROTARY
    if tile < QUERY_TILES:
        heads = tile * HEADS + tl.arange(0, HEADS)
        _prepare_heads(
            row_ptr, query_weight_ptr, cos_sin_row, query_ptr + token * (NUM_HEADS * DIM), eps, heads,
            heads < NUM_HEADS, OFFSET_WEIGHT, INTERLEAVED, HEADS, ROTARY, DIM,
        )  # fmt: skip
    else:
        slot = tl.load(slot_mapping_ptr + token)
        if slot >= 0:
            heads = (tile - QUERY_TILES) * HEADS + tl.arange(0, HEADS)
            mask = (heads < NUM_KV_HEADS)[:, None]
            places = heads[:, None] * DIM + tl.arange(0, DIM)[None, :]
            value = tl.load(row_ptr + (NUM_HEADS + NUM_KV_HEADS) * DIM + places, mask=mask)
            tl.store(value_cache_ptr + slot * (NUM_KV_HEADS * DIM) + places, value, mask=mask)
            _prepare_heads(
                row_ptr + NUM_HEADS * DIM, key_weight_ptr, cos_sin_row, key_cache_ptr + slot * (NUM_KV_HEADS * DIM),
                eps, heads, heads < NUM_KV_HEADS, OFFSET_WEIGHT, INTERLEAVED, HEADS, ROTARY, DIM,
            )  # fmt: skip


def qk_norm_rope_cache(
    qkv,
    query_weight,
    key_weight,
    cos_sin,
    positions,
    slot_mapping,
    key_cache,
    value_cache,
    eps,
    offset_weight,
    interleaved,
    query,
):
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads = key_cache.shape[2]
    heads = min(TILE_VALUES // head_dim, triton.next_power_of_2(max(num_heads, num_kv_heads)))
    tiles = triton.cdiv(num_heads, heads) + triton.cdiv(num_kv_heads, heads)
    _prepare_token[(num_tokens, tiles)](
        qkv,
        query_weight,
        key_weight,
        cos_sin,
        positions,
        slot_mapping,
        key_cache,
        value_cache,
        query,
        eps,
        qkv.stride(0),
        OFFSET_WEIGHT=offset_weight,
        INTERLEAVED=interleaved,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEADS=heads,
        ROTARY=cos_sin.shape[1],
        DIM=head_dim,
        num_warps=max(1, min(4, heads * head_dim // 512)),
    )
