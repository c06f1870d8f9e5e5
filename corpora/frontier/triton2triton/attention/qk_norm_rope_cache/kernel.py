"""Norm and rotation of query and key heads with the cache write: one program per token and head of the projection."""

import triton
import triton.language as tl


@triton.jit
def prepare_head(
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
    num_heads,
    num_kv_heads,
    rotary_dim,
    OFFSET_WEIGHT: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    DIM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    dims = tl.arange(0, DIM)
    row_ptr = qkv_ptr + token * qkv_stride + head * DIM
    slot = tl.load(slot_mapping_ptr + token)
    if head >= num_heads + num_kv_heads:
        if slot >= 0:
            place = (slot * num_kv_heads + head - num_heads - num_kv_heads) * DIM
            tl.store(value_cache_ptr + place + dims, tl.load(row_ptr + dims))
        return

    weight_ptr = query_weight_ptr
    target = query_ptr + (token * num_heads + head) * DIM
    if head >= num_heads:
        if slot < 0:
            return
        weight_ptr = key_weight_ptr
        target = key_cache_ptr + (slot * num_kv_heads + head - num_heads) * DIM

    # Each value takes its partner of the pair, too. It is minus the partner in the first half of the turn.
    half = rotary_dim // 2
    if INTERLEAVED:
        pairs = dims // 2
        is_first = dims % 2 == 0
        partners = tl.where(is_first, dims + 1, dims - 1)
    else:
        pairs = dims % half
        is_first = dims < half
        partners = tl.where(is_first, dims + half, dims - half)
    rotated = dims < rotary_dim
    partners = tl.where(rotated, partners, dims)

    x = tl.load(row_ptr + dims).to(tl.float32)
    inverse = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / DIM + eps)
    weight = tl.load(weight_ptr + dims).to(tl.float32)
    partner = tl.load(row_ptr + partners).to(tl.float32)
    partner_weight = tl.load(weight_ptr + partners).to(tl.float32)
    if OFFSET_WEIGHT:
        weight += 1.0
        partner_weight += 1.0
    y = x * inverse * weight
    other = partner * inverse * partner_weight
    cos_sin_row = cos_sin_ptr + tl.load(positions_ptr + token) * rotary_dim
    cos = tl.load(cos_sin_row + pairs, mask=rotated, other=1.0)
    sin = tl.load(cos_sin_row + half + pairs, mask=rotated, other=0.0)
    result = y * cos + tl.where(is_first, -other, other) * sin
    tl.store(target + dims, result.to(query_ptr.dtype.element_ty))


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
    prepare_head[(num_tokens, qkv.shape[1])](
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
        num_heads,
        key_cache.shape[2],
        cos_sin.shape[1],
        OFFSET_WEIGHT=offset_weight,
        INTERLEAVED=interleaved,
        DIM=head_dim,
        num_warps=1,
    )
