"""expect: wrong_result in heldout-40. Index: one block number for each tile of a window."""

import triton
import triton.language as tl

# Finite, so that a row which sees no key of a tile does not become NaN.
LOWEST = tl.constexpr(-1e30)
TILE_BYTES = 16384


@triton.jit
def find_sequence(cu_seqlens_ptr, tile, group, num_seqs, ROWS: tl.constexpr, STEPS: tl.constexpr):
    """The sequence of a tile. Sequence s owns tiles cu_seqlens[s] * group // ROWS + s and up, as many as it needs."""
    lower = 0
    upper = num_seqs
    for _ in range(STEPS):
        middle = (lower + upper) // 2
        after = tl.load(cu_seqlens_ptr + middle + 1) * group // ROWS + middle + 1 > tile
        upper = tl.where(after, middle, upper)
        lower = tl.where(after, lower, middle + 1)
    return lower


@triton.jit
def attend_segment(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    segment_acc_ptr,
    segment_max_ptr,
    segment_sum_ptr,
    sm_scale,
    softcap,
    window,
    num_seqs,
    num_heads,
    head_dim,
    block_size,
    max_blocks,
    CAPPED: tl.constexpr,
    ONE_BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    kv_head = tl.program_id(1)
    segment = tl.program_id(2)
    num_kv_heads = tl.num_programs(1)
    num_segments = tl.num_programs(2)
    group = num_heads // num_kv_heads
    seq = find_sequence(cu_seqlens_ptr, tl.program_id(0), group, num_seqs, ROWS, STEPS)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first_row = (tl.program_id(0) - begin * group // ROWS - seq) * ROWS
    if first_row >= query_len * group:
        return

    rows = first_row + tl.arange(0, ROWS)
    used = rows < query_len * group
    heads = (begin + rows // group).to(tl.int64) * num_heads + kv_head * group + rows % group
    dims = tl.arange(0, DIM)
    row_mask = used[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + heads[:, None] * head_dim + dims[None, :], mask=row_mask, other=0.0)

    length = tl.load(seq_lens_ptr + seq)
    context = length - query_len
    positions = context + rows // group
    last = context + tl.minimum((first_row + ROWS - 1) // group, query_len - 1)
    blocks_of_segment = tl.cdiv(length, block_size * num_segments)
    lower = segment * blocks_of_segment * block_size
    upper = tl.minimum(lower + blocks_of_segment * block_size, last + 1)
    lower = tl.maximum(lower, context + first_row // group + 1 - window)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(lower, upper, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < upper
        if ONE_BLOCK:
            # Blocks are multiples of a tile: all its tokens lie in one.
            slots = tl.load(table_row + start // block_size).to(tl.int64) * block_size + start % block_size
            slots = slots + tl.arange(0, TILE)
        else:
            blocks = tl.load(table_row + tokens // block_size, mask=inside, other=0).to(tl.int64)
            slots = blocks * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & (dims < head_dim)[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * sm_scale
        if CAPPED:
            # tanh by the logistic function
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)
        behind = positions[:, None] - tokens[None, :]
        visible = inside[None, :] & (behind >= 0) & (behind < window)
        scores = tl.where(visible, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        peak = new_peak

    places = heads * num_segments + segment
    tl.store(segment_acc_ptr + places[:, None] * head_dim + dims[None, :], acc, mask=row_mask)
    tl.store(segment_max_ptr + places, tl.where(total > 0, peak, -float("inf")), mask=used)
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
    tile = max(16, min(64, TILE_BYTES // (dim * query.element_size())))
    attend_segment[(num_tokens * group // rows + num_seqs, num_kv_heads, num_segments)](
        query,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        seq_lens,
        segment_acc,
        segment_max,
        segment_sum,
        sm_scale,
        softcap,
        sliding_window or max_blocks * block_size,
        num_seqs,
        num_heads,
        head_dim,
        block_size,
        max_blocks,
        CAPPED=softcap > 0,
        ONE_BLOCK=block_size % tile == 0,
        STEPS=num_seqs.bit_length(),
        ROWS=rows,
        TILE=tile,
        DIM=dim,
    )
