"""Attention with sinks and a sliding window: tall tiles for prefills, short ones for decodes, in parts where few.

What the baseline wastes, and what is done instead:

- It gives prefills and decodes one tile of 32 rows. Here prefills have 128 rows, which read each key once, and decodes
  have a launch of their own.
- A decode of a long sequence walks over all its keys. Here programs share them, and another kernel merges the parts
  (Flash-Decoding, Dao et al., 2023). The sink joins at the end.
- It masks every tile of keys. Here tall tiles have a mask only where the window or the diagonal crosses them.
- It looks for its sequence one load after another. Here all offsets are compared at once.

Scores are in base 2, whose exponential is one instruction. sm_scale is positive: the highest score is scaled, not each.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-1e30)
ENOUGH_PROGRAMS = 608 if torch.version.hip else 528
MAX_PARTS = 32
TILES_PER_PART = 4


@triton.jit
def _walk(
    query,
    key_cache_ptr,
    value_cache_ptr,
    table_row,
    peak,
    total,
    acc,
    positions,
    start,
    stop,
    scale,
    window,
    MASKED: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """The online softmax over keys start … stop - 1; without MASKED these are whole tiles that all rows see."""
    dims = tl.arange(0, DIM)
    for at in range(start, stop, KEYS):
        tokens = at + tl.arange(0, KEYS)
        inside = tokens < stop
        if MASKED:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside, other=0)
        else:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE)
        places = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE).to(tl.int64) * SLOT_STRIDE
        key_rows = key_cache_ptr + places[:, None] + dims[None, :]
        value_rows = value_cache_ptr + places[:, None] + dims[None, :]
        if MASKED:
            keys = tl.load(key_rows, mask=inside[:, None], other=0.0)
            values = tl.load(value_rows, mask=inside[:, None], other=0.0)
        else:
            keys = tl.load(key_rows)
            values = tl.load(value_rows)
        scores = tl.dot(query, keys.T)
        if MASKED:
            behind = positions[:, None] - tokens[None, :]
            scores = tl.where((behind >= 0) & (behind < window) & inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
        peak = new_peak
    return peak, total, acc


@triton.jit
def _attend(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    sinks_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    out_ptr,
    lse_ptr,
    scale,
    window,
    query_stride,
    num_seqs,
    max_blocks,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    SEQS: tl.constexpr,
    MOST_SHORT: tl.constexpr,
    SHORT: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """One part of the keys for one tile of rows. With one part `out` is final."""
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    TOKENS: tl.constexpr = ROWS // GROUP
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    seq = tl.program_id(0)
    first = 0
    if not SHORT:
        # Tiles start with the last of each sequence: it has the most keys.
        seqs = tl.arange(0, SEQS)
        begins = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0)
        lengths = tl.load(cu_seqlens_ptr + 1 + seqs, mask=seqs < num_seqs, other=0) - begins
        tiles = tl.where(lengths > MOST_SHORT, tl.cdiv(lengths, TOKENS), 0)
        owned = tl.cumsum(tiles, axis=0) - tiles
        found = (owned <= seq) & (seq < owned + tiles)
        first = tl.sum(tl.where(found, (owned + tiles - seq) * TOKENS, 0), axis=0) - TOKENS
        seq = tl.sum(tl.where(found, seqs, 0), axis=0)
        if first < 0:
            return
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    if (query_len == 0) | ((query_len <= MOST_SHORT) != SHORT):
        return

    rows = tl.arange(0, ROWS)
    new = first + rows // GROUP
    heads = kv_head * GROUP + rows % GROUP
    stored = (rows < TOKENS * GROUP) & (new < query_len)
    tokens = (begin + new).to(tl.int64)
    dims = tl.arange(0, DIM)
    query_rows = query_ptr + (tokens * query_stride + heads * DIM)[:, None] + dims[None, :]
    query = tl.load(query_rows, mask=stored[:, None], other=0.0)
    context = tl.load(seq_lens_ptr + seq) - query_len
    positions = context + new
    last = context + tl.minimum(first + TOKENS, query_len)
    lowest = tl.maximum(context + first - window + 1, 0) // KEYS * KEYS
    part_length = tl.cdiv(tl.cdiv(last - lowest, PARTS), KEYS) * KEYS
    start = lowest + part * part_length
    stop = tl.minimum(start + part_length, last)

    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    key_cache_ptr += kv_head * DIM
    value_cache_ptr += kv_head * DIM
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    clear = start
    if not SHORT:
        # All rows see the tiles from `lower` to `clear`.
        lower = tl.cdiv(tl.maximum(last - window, 0), KEYS) * KEYS
        clear = (context + first + 1) // KEYS * KEYS
        lower = tl.minimum(tl.maximum(lower, start), stop)
        clear = tl.minimum(tl.maximum(clear, lower), stop)
        peak, total, acc = _walk(
            query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions, start, lower, scale, window,
            True, NUM_KV_HEADS * DIM, BLOCK_SIZE, KEYS, DIM,
        )  # fmt: skip
        peak, total, acc = _walk(
            query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions, lower, clear, scale, window,
            False, NUM_KV_HEADS * DIM, BLOCK_SIZE, KEYS, DIM,
        )  # fmt: skip
    peak, total, acc = _walk(
        query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions, clear, stop, scale, window,
        True, NUM_KV_HEADS * DIM, BLOCK_SIZE, KEYS, DIM,
    )  # fmt: skip

    if PARTS > 1:
        places = ((seq.to(tl.int64) * NUM_KV_HEADS + kv_head) * PARTS + part) * ROWS + rows
        # A part in which a row sees nothing has total 0 and a log-sum-exp of minus infinity.
        tl.store(lse_ptr + places, peak + tl.log2(total), mask=stored)
        factor = 1.0 / tl.where(total > 0, total, 1.0)
    else:
        places = tokens * NUM_HEADS + heads
        sinks = tl.load(sinks_ptr + heads).to(tl.float32) * LOG2_E
        highest = tl.maximum(peak, sinks)
        factor = tl.exp2(peak - highest)
        factor = factor / (total * factor + tl.exp2(sinks - highest))
    result = acc * factor[:, None]
    out_rows = out_ptr + places[:, None] * DIM + dims[None, :]
    tl.store(out_rows, result.to(out_ptr.dtype.element_ty), mask=stored[:, None])


@triton.jit
def _merge(
    partial_ptr,
    lse_ptr,
    sinks_ptr,
    cu_seqlens_ptr,
    out_ptr,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    MOST_SHORT: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Weighted mean of the parts of one head of one new token. At least one part has keys."""
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    new = tl.program_id(2)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    if (new >= query_len) | (query_len > MOST_SHORT):
        return
    row = new * GROUP + head % GROUP
    places = ((seq * NUM_KV_HEADS + head // GROUP) * PARTS + tl.arange(0, PARTS)) * ROWS + row
    lse = tl.load(lse_ptr + places)
    sink = tl.load(sinks_ptr + head).to(tl.float32) * LOG2_E
    highest = tl.maximum(tl.max(lse, axis=0), sink)
    weights = tl.exp2(lse - highest)
    weights = weights / (tl.sum(weights, axis=0) + tl.exp2(sink - highest))
    dims = tl.arange(0, DIM)
    partial = tl.load(partial_ptr + places[:, None] * DIM + dims[None, :])
    merged = tl.sum(partial * weights[:, None], axis=0)
    place = (begin + new).to(tl.int64) * NUM_HEADS + head
    tl.store(out_ptr + place * DIM + dims, merged.to(out_ptr.dtype.element_ty))


def sink_window_decode(
    query, key_cache, value_cache, sinks, block_table, cu_seqlens, seq_lens, sm_scale, sliding_window, out
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    group = num_heads // num_kv_heads
    window = sliding_window or max_blocks * block_size
    short = max(16, triton.next_power_of_2(group))
    most_short = short // group
    tall = max(128, short)
    sizes = {"NUM_HEADS": num_heads, "NUM_KV_HEADS": num_kv_heads, "MOST_SHORT": most_short, "DIM": head_dim}

    def attend(grid, target, lse, **options):
        _attend[grid](
            query,
            key_cache,
            value_cache,
            sinks,
            block_table,
            cu_seqlens,
            seq_lens,
            target,
            lse,
            sm_scale * LOG2_E.value,
            window,
            query.stride(0),
            num_seqs,
            max_blocks,
            BLOCK_SIZE=block_size,
            SEQS=triton.next_power_of_2(num_seqs),
            **sizes,
            **options,
        )

    tall_seqs = min(num_seqs, num_tokens // (most_short + 1))
    if tall_seqs:
        tiles = num_tokens // (tall // group) + tall_seqs
        stages = 1 if torch.version.hip else 3
        options = {"SHORT": False, "PARTS": 1, "ROWS": tall, "KEYS": 64, "num_warps": 8, "num_stages": stages}
        attend((tiles, num_kv_heads, 1), out, out, **options)

    keys = 64 if head_dim == 64 else 32
    wanted = triton.cdiv(ENOUGH_PROGRAMS, num_seqs * num_kv_heads)
    useful = triton.cdiv(min(window + most_short, max_blocks * block_size), TILES_PER_PART * keys)
    limit = max(1, min(wanted, useful, MAX_PARTS))
    parts = 1 << (limit.bit_length() - 1)
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_seqs, num_kv_heads, parts, short, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_seqs, num_kv_heads, parts, short), dtype=torch.float32, device=out.device)
    stages = 2 if torch.version.hip else 4
    options = {"SHORT": True, "PARTS": parts, "ROWS": short, "KEYS": keys, "num_warps": 4, "num_stages": stages}
    attend((num_seqs, num_kv_heads, parts), partial, lse, **options)
    if parts > 1:
        _merge[(num_seqs, num_heads, most_short)](
            partial, lse, sinks, cu_seqlens, out, PARTS=parts, ROWS=short, **sizes
        )
