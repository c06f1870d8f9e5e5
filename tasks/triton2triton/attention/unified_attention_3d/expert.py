"""Segments of paged attention with sizes that are known when compiling, and masks only where a key may be hidden.

What the baseline wastes, and what is done instead:

- It searches its sequence in up to eight steps that wait for each other. Here all offsets are read at once and counted.
- It masks every tile by tokens and sizes that it learns at run time, and divides each token by the block size. Here
  sizes are constants, and tiles that all rows see have no mask: 128 values of a head take fewer registers, so that
  more programs hide each other's waits.
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
def _load_columns(rows, inside, MASKED: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """Columns FIRST … FIRST + WIDTH - 1 of rows of SIZE values; those past the end are zeros."""
    columns = FIRST + tl.arange(0, WIDTH)
    pointers = rows[:, None] + columns[None, :]
    if MASKED:
        return tl.load(pointers, mask=inside[:, None] & (columns < SIZE)[None, :], other=0.0)
    if FIRST + WIDTH > SIZE:
        return tl.load(pointers, mask=(columns < SIZE)[None, :], other=0.0)
    return tl.load(pointers)


@triton.jit
def _attend_keys(
    query,
    key_cache_ptr,
    value_cache_ptr,
    table_row,
    peak,
    total,
    acc,
    positions,
    first,
    last,
    scale,
    softcap,
    window,
    MASKED: tl.constexpr,
    CAPPED: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    """The online softmax over tokens first … last - 1, in base 2. Without MASKED all rows see all of them."""
    for start in range(first, last, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < last
        if MASKED:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside, other=0)
        else:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE)
        places = (blocks.to(tl.int64) * BLOCK_SIZE + tokens % BLOCK_SIZE) * SLOT_STRIDE
        keys = _load_columns(key_cache_ptr + places, inside, MASKED, 0, DIM, HEAD_DIM)
        values = _load_columns(value_cache_ptr + places, inside, MASKED, 0, DIM, HEAD_DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION) * scale
        if CAPPED:
            scores = softcap * (1.0 - 2.0 * tl.sigmoid(-2.0 * scores / softcap))
        if MASKED:
            behind = positions[:, None] - tokens[None, :]
            scores = tl.where(inside[None, :] & (behind >= 0) & (behind < window), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


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
    query = _load_columns(query_ptr + heads * HEAD_DIM, used, True, 0, DIM, HEAD_DIM)
    context = length - query_len
    positions = context + rows // GROUP
    first_seen = context + first_row // GROUP + 1
    last = context + tl.minimum((first_row + ROWS - 1) // GROUP, query_len - 1)
    blocks_of_segment = tl.cdiv(length, BLOCK_SIZE * num_segments)
    lower = segment * blocks_of_segment * BLOCK_SIZE
    upper = tl.minimum(lower + blocks_of_segment * BLOCK_SIZE, last + 1)
    lower = tl.maximum(lower, first_seen - window)
    # Tiles from `lower` to `whole` are seen by all rows.
    whole = lower
    if lower > last - window:
        whole += tl.maximum(tl.minimum(upper, first_seen) - lower, 0) // TILE * TILE
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    key_cache_ptr += kv_head * HEAD_DIM
    value_cache_ptr += kv_head * HEAD_DIM
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    peak, total, acc = _attend_keys(
        query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions, lower, whole, scale, softcap,
        window, False, CAPPED, NUM_KV_HEADS * HEAD_DIM, BLOCK_SIZE, HEAD_DIM, TILE, DIM,
    )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions, whole, upper, scale, softcap,
        window, True, CAPPED, NUM_KV_HEADS * HEAD_DIM, BLOCK_SIZE, HEAD_DIM, TILE, DIM,
    )  # fmt: skip

    places = heads * num_segments + segment
    columns = tl.arange(0, DIM)
    mask = used[:, None] & (columns < HEAD_DIM)[None, :]
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
    )
