"""ALiBi prefill over a paged prefix: programs of one sequence and head share its tiles of new tokens among them."""

import triton
import triton.language as tl


@triton.jit
def prefill_with_biases(
    query_ptr,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    alibi_slopes_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    context_lens_ptr,
    out_ptr,
    sm_scale,
    num_heads,
    num_kv_heads,
    head_dim,
    block_size,
    max_blocks,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    kv_head = head // (num_heads // num_kv_heads)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    context = tl.load(context_lens_ptr + seq)
    slope = tl.load(alibi_slopes_ptr + head)
    dims = tl.arange(0, DIM)
    inside_dims = (dims < head_dim)[None, :]

    for first in range(tl.program_id(2) * ROWS, query_len, tl.num_programs(2) * ROWS):
        rows = first + tl.arange(0, ROWS)
        positions = context + rows
        row_mask = (rows < query_len)[:, None] & inside_dims
        query_rows = ((begin + rows).to(tl.int64) * num_heads + head) * head_dim
        query = tl.load(query_ptr + query_rows[:, None] + dims[None, :], mask=row_mask, other=0.0)
        peak = tl.full((ROWS,), -float("inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, DIM), tl.float32)
        end = tl.minimum(context + first + ROWS, context + query_len)
        for start in range(0, end, TILE):
            # A tile may hold the end of the prefix and the first new tokens: each is loaded from where it lies.
            tokens = start + tl.arange(0, TILE)
            cached = tokens < context
            new = (tokens >= context) & (tokens < end)
            blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=cached, other=0)
            slots = blocks.to(tl.int64) * block_size + tokens % block_size
            cache_places = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
            new_tokens = (begin + tokens - context).to(tl.int64)
            new_places = ((new_tokens * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
            cache_mask = cached[:, None] & inside_dims
            new_mask = new[:, None] & inside_dims
            keys = tl.load(key_cache_ptr + cache_places, mask=cache_mask, other=0.0)
            keys += tl.load(key_ptr + new_places, mask=new_mask, other=0.0)
            values = tl.load(value_cache_ptr + cache_places, mask=cache_mask, other=0.0)
            values += tl.load(value_ptr + new_places, mask=new_mask, other=0.0)

            ahead = tokens[None, :] - positions[:, None]
            scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * sm_scale + slope * ahead
            scores = tl.where(ahead <= 0, scores, -float("inf"))
            new_peak = tl.maximum(peak, tl.max(scores, axis=1))
            weights = tl.exp(scores - new_peak[:, None])
            shrink = tl.exp(peak - new_peak)
            total = total * shrink + tl.sum(weights, axis=1)
            acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
            peak = new_peak
        result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + query_rows[:, None] + dims[None, :], result, mask=row_mask)


def paged_prefix_prefill_alibi(
    query,
    key,
    value,
    key_cache,
    value_cache,
    alibi_slopes,
    block_table,
    cu_seqlens,
    context_lens,
    sm_scale,
    out,
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    rows = 32 if query.element_size() == 2 else 16
    dim = max(16, triton.next_power_of_2(head_dim))
    # Long rows of float32 would not fit into the shared memory of every GPU.
    tile = 16 if query.element_size() == 4 else 32
    # As many programs as a sequence of mean length has tiles; longer ones go round.
    tiles = min(1024, triton.cdiv(num_tokens, num_seqs * rows))
    prefill_with_biases[(num_seqs, num_heads, tiles)](
        query,
        key,
        value,
        key_cache,
        value_cache,
        alibi_slopes,
        block_table,
        cu_seqlens,
        context_lens,
        out,
        sm_scale,
        num_heads,
        num_kv_heads,
        head_dim,
        block_size,
        max_blocks,
        ROWS=rows,
        TILE=tile,
        DIM=dim,
        num_stages=1,
    )
