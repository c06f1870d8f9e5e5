"""expect: wrong_result in seen-02. Empty rows: where a tile has no key in the window, exp(-inf + inf) is NaN."""

import triton
import triton.language as tl

# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-float("inf"))


@triton.jit
def take_in(scores, values, peak, total, acc):
    """One step of the online softmax."""
    new_peak = tl.maximum(peak, tl.max(scores, axis=1))
    weights = tl.exp(scores - new_peak[:, None])
    shrink = tl.exp(peak - new_peak)
    total = total * shrink + tl.sum(weights, axis=1)
    acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
    return new_peak, total, acc


@triton.jit
def prefill_tile(
    query_ptr,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    context_lens_ptr,
    out_ptr,
    sm_scale,
    window,
    query_stride,
    key_stride,
    num_seqs,
    num_kv_heads,
    head_dim,
    block_size,
    max_blocks,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    # Which sequence: each owns the tiles of its tokens and, for what is left over, one more.
    seq = 0
    tile = tl.program_id(0)
    begin = 0
    query_len = tl.load(cu_seqlens_ptr + 1)
    for other in range(1, num_seqs):
        start = tl.load(cu_seqlens_ptr + other)
        if start // ROWS + other <= tl.program_id(0):
            seq = other
            begin = start
            query_len = tl.load(cu_seqlens_ptr + other + 1) - start
            tile = tl.program_id(0) - start // ROWS - other
    if tile * ROWS >= query_len:
        return

    head = tl.program_id(1)
    kv_head = head // (tl.num_programs(1) // num_kv_heads)
    rows = tile * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    row_mask = (rows < query_len)[:, None] & (dims < head_dim)[None, :]
    query_rows = ((begin + rows).to(tl.int64) * tl.num_programs(1) + head) * head_dim
    strided_rows = (begin + rows).to(tl.int64) * query_stride + head * head_dim
    query = tl.load(query_ptr + strided_rows[:, None] + dims[None, :], mask=row_mask, other=0.0)
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)

    context = tl.load(context_lens_ptr + seq)
    table_row = block_table_ptr + tl.cast(seq, tl.int64) * max_blocks
    first_seen = tl.maximum(context + tile * ROWS - window, 0) // TILE * TILE
    for start in range(first_seen, context, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < context
        blocks = tl.load(table_row + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & (dims < head_dim)[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * sm_scale
        visible = inside[None, :] & (context + rows[:, None] - tokens[None, :] < window)
        scores = tl.where(visible, scores, -float("inf"))
        peak, total, acc = take_in(scores, values, peak, total, acc)

    end = tl.minimum(tile * ROWS + ROWS, query_len)
    for start in range(0, end, TILE):
        tokens = start + tl.arange(0, TILE)
        # Keys and values are strided alike.
        new_rows = (begin + tokens).to(tl.int64) * key_stride + kv_head * head_dim
        offsets = new_rows[:, None] + dims[None, :]
        mask = (tokens < end)[:, None] & (dims < head_dim)[None, :]
        keys = tl.load(key_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_ptr + offsets, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * sm_scale
        behind = rows[:, None] - tokens[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -float("inf"))
        peak, total, acc = take_in(scores, values, peak, total, acc)

    result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + query_rows[:, None] + dims[None, :], result, mask=row_mask)


def paged_prefix_prefill(
    query,
    key,
    value,
    key_cache,
    value_cache,
    block_table,
    cu_seqlens,
    context_lens,
    sm_scale,
    sliding_window,
    out,
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    rows = 32 if query.element_size() == 2 else 16
    dim = max(16, triton.next_power_of_2(head_dim))
    # Long rows of float32 would not fit into the shared memory of every GPU.
    tile = 16 if query.element_size() == 4 else 32
    prefill_tile[(num_tokens // rows + num_seqs, num_heads)](
        query,
        key,
        value,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        context_lens,
        out,
        sm_scale,
        sliding_window or max_blocks * block_size + num_tokens,
        query.stride(0),
        key.stride(0),
        num_seqs,
        num_kv_heads,
        head_dim,
        block_size,
        max_blocks,
        ROWS=rows,
        TILE=tile,
        DIM=dim,
    )
