"""Absorbed MLA decode: one program per sequence and 16 query heads walks over the tokens of the sequence.

A tile of latent values serves twice, as keys and as values.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def decode_latent(
    query_nope_ptr,
    query_rope_ptr,
    latent_cache_ptr,
    rope_cache_ptr,
    block_ids_ptr,
    cu_blocks_ptr,
    seq_lens_ptr,
    out_ptr,
    lse2_ptr,
    sm_scale,
    num_heads,
    latent_stride,
    rope_stride,
    block_size,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
):
    seq = tl.program_id(1).to(tl.int64)
    heads = tl.program_id(0) * HEADS + tl.arange(0, HEADS)
    head_mask = heads < num_heads
    rows = seq * num_heads + heads
    latent_dims = tl.arange(0, LATENT)
    rope_dims = tl.arange(0, ROPE)
    nope_places = rows[:, None] * LATENT + latent_dims[None, :]
    query_nope = tl.load(query_nope_ptr + nope_places, mask=head_mask[:, None], other=0.0)
    query_rope_places = rows[:, None] * ROPE + rope_dims[None, :]
    query_rope = tl.load(query_rope_ptr + query_rope_places, mask=head_mask[:, None], other=0.0)

    length = tl.load(seq_lens_ptr + seq)
    blocks_ptr = block_ids_ptr + tl.load(cu_blocks_ptr + seq)
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, LATENT), tl.float32)
    for start in range(0, length, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < length
        blocks = tl.load(blocks_ptr + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        latent_places = slots[:, None] * latent_stride + latent_dims[None, :]
        latent = tl.load(latent_cache_ptr + latent_places, mask=inside[:, None], other=0.0)
        rope_places = slots[:, None] * rope_stride + rope_dims[None, :]
        rope = tl.load(rope_cache_ptr + rope_places, mask=inside[:, None], other=0.0)
        scores = tl.dot(query_nope, tl.trans(latent))
        scores += tl.dot(query_rope, tl.trans(rope))
        scores = tl.where(inside[None, :], scores * (sm_scale * LOG2_E), -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(latent.dtype), latent)
        peak = new_peak

    # An empty sequence has total 0, and the logarithm of that is minus infinity.
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(out_ptr + nope_places, result.to(out_ptr.dtype.element_ty), mask=head_mask[:, None])
    tl.store(lse2_ptr + rows, peak + tl.log2(total), mask=head_mask)


def mla_decode(query_nope, query_rope, latent_cache, rope_cache, block_ids, cu_blocks, seq_lens, sm_scale, out, lse2):
    num_seqs, num_heads, latent_dim = query_nope.shape
    decode_latent[(triton.cdiv(num_heads, 16), num_seqs)](
        query_nope,
        query_rope,
        latent_cache,
        rope_cache,
        block_ids,
        cu_blocks,
        seq_lens,
        out,
        lse2,
        sm_scale,
        num_heads,
        latent_cache.stride(1),
        rope_cache.stride(1),
        latent_cache.shape[1],
        LATENT=latent_dim,
        ROPE=query_rope.shape[2],
        HEADS=16,
        TILE=16 if torch.version.hip else 32,
        num_warps=4,
        num_stages=2,
    )
