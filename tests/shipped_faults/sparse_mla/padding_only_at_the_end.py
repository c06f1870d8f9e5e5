"""expect: wrong_result. The entries that are not padding are counted, and taken to come first."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that a row which has met nothing but padding does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def attend_listed(
    query_nope_ptr,
    query_rope_ptr,
    latent_cache_ptr,
    rope_cache_ptr,
    indices_ptr,
    out_ptr,
    lse2_ptr,
    sm_scale,
    num_heads,
    top_k,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    head_mask = heads < num_heads
    rows = token * num_heads + heads
    latent_dims = tl.arange(0, LATENT)
    rope_dims = tl.arange(0, ROPE)
    nope_places = rows[:, None] * LATENT + latent_dims[None, :]
    query_nope = tl.load(query_nope_ptr + nope_places, mask=head_mask[:, None], other=0.0)
    rope_places = rows[:, None] * ROPE + rope_dims[None, :]
    query_rope = tl.load(query_rope_ptr + rope_places, mask=head_mask[:, None], other=0.0)

    peak = tl.full((HEADS,), LOWEST, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, LATENT), tl.float32)
    count = 0
    for start in range(0, top_k, TILE):
        entries = start + tl.arange(0, TILE)
        some = tl.load(indices_ptr + token * top_k + entries, mask=entries < top_k, other=-1)
        count += tl.sum((some >= 0).to(tl.int32), axis=0)
    for start in range(0, count, TILE):
        entries = start + tl.arange(0, TILE)
        slots = tl.load(indices_ptr + token * top_k + entries, mask=entries < count, other=-1).to(tl.int64)
        listed = slots >= 0
        latent_ptrs = latent_cache_ptr + slots[:, None] * LATENT + latent_dims[None, :]
        latent = tl.load(latent_ptrs, mask=listed[:, None], other=0.0)
        rope_ptrs = rope_cache_ptr + slots[:, None] * ROPE + rope_dims[None, :]
        rope = tl.load(rope_ptrs, mask=listed[:, None], other=0.0)
        scores = tl.dot(query_nope, tl.trans(latent))
        scores += tl.dot(query_rope, tl.trans(rope))
        scores = tl.where(listed[None, :], scores * (sm_scale * LOG2_E), -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(latent.dtype), latent)
        peak = new_peak

    # A row without slots has total 0, and the logarithm of that is minus infinity.
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(out_ptr + nope_places, result.to(out_ptr.dtype.element_ty), mask=head_mask[:, None])
    tl.store(lse2_ptr + rows, peak + tl.log2(total), mask=head_mask)


def sparse_mla(query_nope, query_rope, latent_cache, rope_cache, indices, sm_scale, out, lse2):
    num_tokens, num_heads, latent_dim = query_nope.shape
    attend_listed[(num_tokens, triton.cdiv(num_heads, 16))](
        query_nope,
        query_rope,
        latent_cache,
        rope_cache,
        indices,
        out,
        lse2,
        sm_scale,
        num_heads,
        indices.shape[1],
        LATENT=latent_dim,
        ROPE=query_rope.shape[2],
        HEADS=16,
        TILE=16 if torch.version.hip else 32,
        num_warps=4,
        num_stages=2,
    )
