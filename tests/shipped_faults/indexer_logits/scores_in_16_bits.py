"""expect: wrong_result. Scores of the heads are added in bfloat16."""

import triton
import triton.language as tl


@triton.jit
def score_tile(
    query_ptr,
    weights_ptr,
    key_cache_ptr,
    key_scales_ptr,
    block_table_ptr,
    seq_lens_ptr,
    logits_ptr,
    query_len,
    num_heads,
    max_len,
    block_size,
    max_blocks,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    seq = row // query_len
    tokens = tl.program_id(1) * TILE + tl.arange(0, TILE)
    seen = tl.load(seq_lens_ptr + seq) - query_len + 1 + row % query_len
    inside = tokens < seen
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, DIM)
    head_mask = heads < num_heads
    query_places = (row * num_heads + heads)[:, None] * DIM + dims[None, :]
    query = tl.load(query_ptr + query_places, mask=head_mask[:, None], other=0.0)
    weights = tl.load(weights_ptr + row * num_heads + heads, mask=head_mask, other=0.0)

    blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
    slots = blocks.to(tl.int64) * block_size + tokens % block_size
    keys = tl.load(key_cache_ptr + slots[:, None] * DIM + dims[None, :], mask=inside[:, None], other=0.0)
    scales = tl.load(key_scales_ptr + slots, mask=inside, other=0.0)
    scores = tl.maximum(tl.dot(query, tl.trans(keys)), 0.0)
    logits = tl.sum((scores * weights[:, None]).to(tl.bfloat16).to(tl.float32), axis=0) * scales
    logits = tl.where(inside, logits, -float("inf"))
    tl.store(logits_ptr + row * max_len + tokens, logits, mask=tokens < max_len)


def indexer_logits(query, weights, key_cache, key_scales, block_table, seq_lens, logits):
    rows, num_heads, head_dim = query.shape
    max_len = logits.shape[1]
    score_tile[(rows, triton.cdiv(max_len, 64))](
        query,
        weights,
        key_cache,
        key_scales,
        block_table,
        seq_lens,
        logits,
        rows // seq_lens.shape[0],
        num_heads,
        max_len,
        key_cache.shape[1],
        block_table.shape[1],
        HEADS=max(16, triton.next_power_of_2(num_heads)),
        TILE=64,
        DIM=head_dim,
        num_warps=4,
    )
