"""expect: wrong_result in seen-01. Too little precision: weights of the softmax are rounded to fp8 before they meet the values."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def decode_latent(
    query_ptr,
    kv_cache_ptr,
    kv_scale_ptr,
    block_table_ptr,
    seq_lens_ptr,
    out_ptr,
    lse2_ptr,
    sm_scale,
    num_heads,
    token_stride,
    block_size,
    max_blocks,
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
    rope_dims = LATENT + tl.arange(0, ROPE)
    query_rows = query_ptr + rows[:, None] * (LATENT + ROPE)
    query_latent = tl.load(query_rows + latent_dims[None, :], mask=head_mask[:, None], other=0.0)
    query_rope = tl.load(query_rows + rope_dims[None, :], mask=head_mask[:, None], other=0.0)

    length = tl.load(seq_lens_ptr + seq)
    kv_scale = tl.load(kv_scale_ptr)
    scale = sm_scale * kv_scale * LOG2_E
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, LATENT), tl.float32)
    for start in range(0, length, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < length
        blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        cache_rows = kv_cache_ptr + slots[:, None] * token_stride
        latent = tl.load(cache_rows + latent_dims[None, :], mask=inside[:, None], other=0.0).to(query_latent.dtype)
        rope = tl.load(cache_rows + rope_dims[None, :], mask=inside[:, None], other=0.0).to(query_rope.dtype)
        scores = tl.dot(query_latent, tl.trans(latent))
        scores += tl.dot(query_rope, tl.trans(rope))
        scores = tl.where(inside[None, :], scores * scale, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(kv_cache_ptr.dtype.element_ty).to(latent.dtype), latent)
        peak = new_peak

    # An empty sequence has total 0, and the logarithm of that is minus infinity.
    result = acc * (kv_scale / tl.where(total > 0, total, 1.0))[:, None]
    out_rows = out_ptr + rows[:, None] * LATENT + latent_dims[None, :]
    tl.store(out_rows, result.to(out_ptr.dtype.element_ty), mask=head_mask[:, None])
    tl.store(lse2_ptr + rows, peak + tl.log2(total), mask=head_mask)


def mla_decode_fp8(query, kv_cache, kv_scale, block_table, seq_lens, sm_scale, out, lse2):
    num_seqs, num_heads, latent_dim = out.shape
    decode_latent[(triton.cdiv(num_heads, 16), num_seqs)](
        query,
        kv_cache,
        kv_scale,
        block_table,
        seq_lens,
        out,
        lse2,
        sm_scale,
        num_heads,
        kv_cache.stride(1),
        kv_cache.shape[1],
        block_table.shape[1],
        LATENT=latent_dim,
        ROPE=query.shape[2] - latent_dim,
        HEADS=16,
        TILE=16 if torch.version.hip else 32,
        num_warps=4,
        num_stages=2,
    )
