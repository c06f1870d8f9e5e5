"""Segments of paged attention with sizes that are known when compiling, and two tiles of keys and values in flight.

What the baseline wastes, and what is done instead:

- It searches its sequence in up to eight steps that wait for each other. Here all offsets are read at once and counted.
- It masks every load by tokens and sizes that it learns at run time, and divides each token by the block size. Here
  sizes are constants, loads need no mask, and scores take two comparisons.
- Each of its steps waits for keys that were asked for in the one before. Here two steps lie between.
- Programs of a token's key heads, which lie side by side in memory, are launched one sequence apart. Here they are
  neighbours.

Scores are in base 2, whose exponential is one instruction. Tiles and products are the baseline's but for float32: it
takes three TF32 products on NVIDIA, in place of arithmetic without matrix units, and 16 keys a step in place of 32,
which leave room for three programs of 128 values on a CU of AMD's in place of one.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TILE_BYTES = 16384
LOG2_E = 1.4426950408889634
LN_2 = tl.constexpr(0.6931471805599453)
# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def _load_columns(rows, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """All columns of rows of SIZE values, and zeros up to WIDTH."""
    columns = tl.arange(0, WIDTH)
    pointers = rows[:, None] + columns[None, :]
    if WIDTH > SIZE:
        return tl.load(pointers, mask=(columns < SIZE)[None, :], other=0.0)
    return tl.load(pointers)


@triton.jit
def _attend_segment(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    segment_acc_ptr,
    segment_max_ptr,
    segment_sum_ptr,
    scale,
    softcap,
    window,
    num_seqs,
    max_blocks,
    CAPPED: tl.constexpr,
    GROUP: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SEQS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    # Sequence s owns tiles cu_seqlens[s] * GROUP // ROWS + s and up, of which the last may be empty.
    kv_head = tl.program_id(0)
    segment = tl.program_id(1)
    tile = tl.program_id(2)
    num_segments = tl.num_programs(1)
    seqs = tl.arange(0, SEQS)
    owned = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0) * GROUP // ROWS + seqs
    seq = tl.sum(((seqs < num_seqs) & (owned <= tile)).to(tl.int32), axis=0) - 1
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    length = tl.load(seq_lens_ptr + seq)
    first_row = (tile - begin * GROUP // ROWS - seq) * ROWS
    if first_row >= query_len * GROUP:
        return

    rows = first_row + tl.arange(0, ROWS)
    used = rows < query_len * GROUP
    heads = (begin + rows // GROUP).to(tl.int64) * (NUM_KV_HEADS * GROUP) + kv_head * GROUP + rows % GROUP
    columns = tl.arange(0, DIM)
    mask = used[:, None] & (columns < HEAD_DIM)[None, :]
    query = tl.load(query_ptr + heads[:, None] * HEAD_DIM + columns[None, :], mask=mask, other=0.0)
    context = length - query_len
    positions = context + rows // GROUP
    last = context + tl.minimum((first_row + ROWS - 1) // GROUP, query_len - 1)
    blocks_of_segment = tl.cdiv(length, BLOCK_SIZE * num_segments)
    lower = segment * blocks_of_segment * BLOCK_SIZE
    upper = tl.minimum(lower + blocks_of_segment * BLOCK_SIZE, last + 1)
    lower = tl.maximum(lower, context + first_row // GROUP + 1 - window)
    newest = tl.minimum(positions, upper - 1)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    key_cache_ptr += kv_head * HEAD_DIM
    value_cache_ptr += kv_head * HEAD_DIM
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(lower, upper, TILE):
        offsets = tl.arange(0, TILE)
        # Past the end, the last token is read again.
        tokens = tl.minimum(start + offsets, upper - 1)
        blocks = tl.load(table_row + tokens // BLOCK_SIZE)
        places = (blocks.to(tl.int64) * BLOCK_SIZE + tokens % BLOCK_SIZE) * (NUM_KV_HEADS * HEAD_DIM)
        keys = _load_columns(key_cache_ptr + places, DIM, HEAD_DIM)
        values = _load_columns(value_cache_ptr + places, DIM, HEAD_DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION) * scale
        if CAPPED:
            scores = softcap * (1.0 - 2.0 * tl.sigmoid(-2.0 * scores / softcap))
        token = (start + offsets)[None, :]
        visible = (token <= newest[:, None]) & (token > (positions - window)[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak

    places = heads * num_segments + segment
    tl.store(segment_acc_ptr + places[:, None] * HEAD_DIM + columns[None, :], acc, mask=mask)
    tl.store(segment_max_ptr + places, tl.where(total > 0, peak * LN_2, -float("inf")), mask=used)
    tl.store(segment_sum_ptr + places, total, mask=used)


def unified_attention_3d(
    query,
    key_cache,
    value_cache,
    block_table,
    cu_seqlens,
    seq_lens,
    sm_scale,
    softcap,
    sliding_window,
    segment_acc,
    segment_max,
    segment_sum,
):
    num_tokens, num_heads, num_segments, head_dim = segment_acc.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    group = num_heads // num_kv_heads
    rows = 16 if group <= 16 else 32
    dim = max(16, triton.next_power_of_2(head_dim))
    _attend_segment[(num_kv_heads, num_segments, num_tokens * group // rows + num_seqs)](
        query,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        seq_lens,
        segment_acc,
        segment_max,
        segment_sum,
        sm_scale * LOG2_E,
        softcap * LOG2_E,
        sliding_window or max_blocks * block_size,
        num_seqs,
        max_blocks,
        CAPPED=softcap > 0,
        GROUP=group,
        NUM_KV_HEADS=num_kv_heads,
        BLOCK_SIZE=block_size,
        HEAD_DIM=head_dim,
        SEQS=triton.next_power_of_2(num_seqs),
        ROWS=rows,
        TILE=16 if query.element_size() == 4 else max(16, min(64, TILE_BYTES // (dim * 2))),
        DIM=dim,
        num_warps=4,
        # Of five stages, block numbers take two: keys and values of two tiles are in flight. AMD has 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 5,
    )
