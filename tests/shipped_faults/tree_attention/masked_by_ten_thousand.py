"""expect: wrong_result in heldout-32. Sentinel: hidden nodes get their score less 10000, not minus infinity."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend_tree(
    query_ptr,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    tree_mask_ptr,
    block_table_ptr,
    context_lens_ptr,
    out_ptr,
    sm_scale,
    tree_len,
    num_heads,
    num_kv_heads,
    block_size,
    max_blocks,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    seq = tl.program_id(2).to(tl.int64)
    kv_head = tl.program_id(1)
    group = num_heads // num_kv_heads
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    present = rows < tree_len * group
    nodes = rows // group
    dims = tl.arange(0, DIM)
    heads = kv_head * group + rows % group
    query_places = ((seq * tree_len + nodes) * num_heads + heads)[:, None] * DIM + dims[None, :]
    query = tl.load(query_ptr + query_places, mask=present[:, None], other=0.0)
    context = tl.load(context_lens_ptr + seq)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(0, context, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < context
        blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        places = (slots * num_kv_heads + kv_head)[:, None] * DIM + dims[None, :]
        key = tl.load(key_cache_ptr + places, mask=inside[:, None], other=0.0)
        value = tl.load(value_cache_ptr + places, mask=inside[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(key)) * (sm_scale * LOG2_E)
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(value.dtype), value)
        peak = new_peak

    mask_ptr = tree_mask_ptr + seq * tree_len * tree_len
    for start in range(0, tree_len, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < tree_len
        places = ((seq * tree_len + tokens) * num_kv_heads + kv_head)[:, None] * DIM + dims[None, :]
        key = tl.load(key_ptr + places, mask=inside[:, None], other=0.0)
        value = tl.load(value_ptr + places, mask=inside[:, None], other=0.0)
        both = present[:, None] & inside[None, :]
        seen = tl.load(mask_ptr + nodes[:, None] * tree_len + tokens[None, :], mask=both, other=0) != 0
        scores = tl.dot(query, tl.trans(key)) * (sm_scale * LOG2_E)
        scores = tl.where(seen, scores, scores - 10000.0)
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        # Where nothing was seen so far, the peak is minus infinity.
        shift = tl.where(new_peak > -float("inf"), new_peak, 0.0)
        weights = tl.exp2(scores - shift[:, None])
        shrink = tl.exp2(peak - shift)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(value.dtype), value)
        peak = new_peak
    out = acc / total[:, None]
    tl.store(out_ptr + query_places, out.to(out_ptr.dtype.element_ty), mask=present[:, None])


def tree_attention(query, key, value, key_cache, value_cache, tree_mask, block_table, context_lens, sm_scale, out):
    num_seqs, tree_len, _ = tree_mask.shape
    _, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    rows = 32 if torch.version.hip else 64
    grid = (triton.cdiv(tree_len * (num_heads // num_kv_heads), rows), num_kv_heads, num_seqs)
    attend_tree[grid](
        query,
        key,
        value,
        key_cache,
        value_cache,
        tree_mask,
        block_table,
        context_lens,
        out,
        sm_scale,
        tree_len,
        num_heads,
        num_kv_heads,
        key_cache.shape[1],
        block_table.shape[1],
        DIM=head_dim,
        ROWS=rows,
        TILE=32,
        num_warps=4,
        num_stages=2,
    )
