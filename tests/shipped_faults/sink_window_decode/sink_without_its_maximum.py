"""expect: wrong_result. The sink joins without a maximum, and the exponentials of large scores overflow."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def attend_tile(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    sinks_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    out_ptr,
    sm_scale,
    window,
    query_stride,
    num_seqs,
    num_heads,
    num_kv_heads,
    block_size,
    max_blocks,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    group = num_heads // num_kv_heads
    tokens_of_tile = ROWS // group
    # Sequence s owns tiles cu_seqlens[s] // tokens_of_tile + s and up: at least as many as it needs.
    seq = 0
    for other in range(1, num_seqs):
        seq += (tl.load(cu_seqlens_ptr + other) // tokens_of_tile + other <= tl.program_id(0)).to(tl.int32)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first = (tl.program_id(0) - begin // tokens_of_tile - seq) * tokens_of_tile
    if first >= query_len:
        return

    kv_head = tl.program_id(1)
    rows = tl.arange(0, ROWS)
    new = first + rows // group
    heads = kv_head * group + rows % group
    dims = tl.arange(0, DIM)
    row_mask = (rows < tokens_of_tile * group) & (new < query_len)
    tokens = (begin + new).to(tl.int64)
    query_places = tokens * query_stride + heads * DIM
    query = tl.load(query_ptr + query_places[:, None] + dims[None, :], mask=row_mask[:, None], other=0.0)

    context = tl.load(seq_lens_ptr + seq) - query_len
    positions = context + new
    lower = tl.maximum(context + first - window + 1, 0) // TILE * TILE
    upper = context + tl.minimum(first + tokens_of_tile, query_len)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(lower, upper, TILE):
        keys_at = start + tl.arange(0, TILE)
        inside = keys_at < upper
        blocks = tl.load(table_row + keys_at // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + keys_at % block_size
        places = (slots * num_kv_heads + kv_head)[:, None] * DIM + dims[None, :]
        keys = tl.load(key_cache_ptr + places, mask=inside[:, None], other=0.0)
        values = tl.load(value_cache_ptr + places, mask=inside[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(keys)) * (sm_scale * LOG2_E)
        behind = positions[:, None] - keys_at[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values)
        peak = new_peak

    sinks = tl.load(sinks_ptr + heads).to(tl.float32) * LOG2_E
    highest = tl.zeros_like(peak)
    share = tl.exp2(peak - highest)
    result = acc * (share / (total * share + tl.exp2(sinks - highest)))[:, None]
    out_places = (tokens * num_heads + heads)[:, None] * DIM + dims[None, :]
    tl.store(out_ptr + out_places, result.to(out_ptr.dtype.element_ty), mask=row_mask[:, None])


def sink_window_decode(
    query, key_cache, value_cache, sinks, block_table, cu_seqlens, seq_lens, sm_scale, sliding_window, out
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    group = num_heads // num_kv_heads
    rows = max(32, triton.next_power_of_2(group))
    attend_tile[(num_tokens // (rows // group) + num_seqs, num_kv_heads)](
        query,
        key_cache,
        value_cache,
        sinks,
        block_table,
        cu_seqlens,
        seq_lens,
        out,
        sm_scale,
        sliding_window or max_blocks * block_size,
        query.stride(0),
        num_seqs,
        num_heads,
        num_kv_heads,
        block_size,
        max_blocks,
        ROWS=rows,
        TILE=32,
        DIM=head_dim,
        num_warps=4,
        num_stages=1 if torch.version.hip else 2,
    )
