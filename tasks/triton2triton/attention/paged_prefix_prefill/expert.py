"""Prefill over a paged prefix with tall tiles: up to 128 rows of tokens and query heads read each key once.

What the baseline wastes, and what is done instead:

- Each of its tiles of 32 tokens of one query head reads all keys. Here a tile has 64 or 128 rows, which are tokens
  times heads of one key head: keys and their places are read half to a quarter as often, and wgmma applies.
- Each of its steps waits for 32 keys. Here a step has 64, and there are half as many.
- It masks every block. Here whole blocks of the prefix that all rows see have no mask.
- It finds its sequence in a serial loop over all of them. Here all offsets are read at once and counted.
- One sequence after a long prefix leaves most of a GPU empty. Here its keys are cut into parts, which a second kernel
  merges (Flash-Decoding, Dao et al., 2023).

Scores are in base 2, whose exponential is one instruction.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 512
MAX_PARTS = 64
TILES_PER_PART = 8
LOG2_E = 1.4426950408889634
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
    query_rest,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    table_row,
    peak,
    total,
    acc,
    positions,
    context,
    first,
    last,
    scale,
    window,
    key_stride,
    MASKED: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """The online softmax over positions first … last - 1. Without MASKED all are in the prefix and seen by all rows."""
    for at in range(first, last, KEYS):
        tokens = at + tl.arange(0, KEYS)
        inside = tokens < last
        cached = tokens < context
        if MASKED:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside & cached, other=0)
        else:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE)
        places = (blocks.to(tl.int64) * BLOCK_SIZE + tokens % BLOCK_SIZE) * SLOT_STRIDE
        key_rows = key_cache_ptr + places
        value_rows = value_cache_ptr + places
        if MASKED:
            # A block may hold the end of the prefix and the first new tokens.
            new_places = (tokens - context) * key_stride
            key_rows = tl.where(cached, key_rows, key_ptr + new_places)
            value_rows = tl.where(cached, value_rows, value_ptr + new_places)
        keys = _load_columns(key_rows, inside, MASKED, 0, DIM, HEAD_DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION)
        if REST:
            keys = _load_columns(key_rows, inside, MASKED, DIM, REST, HEAD_DIM)
            scores = tl.dot(query_rest, keys.T, scores, input_precision=PRECISION)
        values = _load_columns(value_rows, inside, MASKED, 0, WHOLE, HEAD_DIM)
        scores = scores * scale
        if MASKED:
            behind = positions[:, None] - tokens[None, :]
            scores = tl.where(inside[None, :] & (behind >= 0) & (behind < window), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit
def _prefill_tile(
    query_ptr,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    context_lens_ptr,
    out_ptr,
    lse_ptr,
    scale,
    window,
    query_stride,
    key_stride,
    num_seqs,
    max_blocks,
    WINDOWED: tl.constexpr,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SEQS: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    WHOLE: tl.constexpr,
):
    # Sequence s owns tiles cu_seqlens[s] // TOKENS + s and up, of which the last may be empty.
    TOKENS: tl.constexpr = ROWS // HEADS
    # Masks and pointers of two sources take registers: such blocks are half as long.
    MASKED_KEYS: tl.constexpr = KEYS if KEYS < 32 else KEYS // 2
    tile = tl.program_id(0) // (NUM_HEADS // HEADS)
    first_head = tl.program_id(0) % (NUM_HEADS // HEADS) * HEADS
    seqs = tl.arange(0, SEQS)
    owned = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0) // TOKENS + seqs
    seq = tl.sum(((seqs < num_seqs) & (owned <= tile)).to(tl.int32), axis=0) - 1
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first = (tile - begin // TOKENS - seq) * TOKENS
    if first >= query_len:
        return

    context = tl.load(context_lens_ptr + seq)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    kv_place = first_head // (NUM_HEADS // NUM_KV_HEADS) * HEAD_DIM
    rows = tl.arange(0, ROWS)
    new = first + rows // HEADS
    stored = new < query_len
    places = (begin + new).to(tl.int64) * NUM_HEADS + first_head + rows % HEADS
    query_rows = query_ptr + (begin + new).to(tl.int64) * query_stride + (first_head + rows % HEADS) * HEAD_DIM
    query = _load_columns(query_rows, stored, True, 0, DIM, HEAD_DIM)
    query_rest = query
    if REST:
        query_rest = _load_columns(query_rows, stored, True, DIM, REST, HEAD_DIM)
    key_ptr += begin.to(tl.int64) * key_stride + kv_place
    value_ptr += begin.to(tl.int64) * key_stride + kv_place
    key_cache_ptr += kv_place
    value_cache_ptr += kv_place

    positions = context + new
    end = context + tl.minimum(first + TOKENS, query_len)
    start = tl.maximum(context + first - window + 1, 0) // KEYS * KEYS
    part_length = tl.cdiv(tl.cdiv(end - start, PARTS), KEYS) * KEYS
    start += tl.program_id(1) * part_length
    stop = tl.minimum(start + part_length, end)
    # Blocks from `lower` to `upper` need no mask.
    prefix = tl.minimum(context // KEYS * KEYS, stop)
    lower = start
    if WINDOWED:
        lower = tl.maximum(start, tl.minimum(tl.cdiv(tl.maximum(end - window, 0), KEYS) * KEYS, prefix))
    upper = tl.maximum(lower, prefix)
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, WHOLE), tl.float32)
    if WINDOWED:
        peak, total, acc = _attend_keys(
            query, query_rest, key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc,
            positions, context, start, lower, scale, window, key_stride,
            True, NUM_KV_HEADS * HEAD_DIM, BLOCK_SIZE, HEAD_DIM, MASKED_KEYS, DIM, REST, WHOLE,
        )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, query_rest, key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc,
        positions, context, lower, upper, scale, window, key_stride,
        False, NUM_KV_HEADS * HEAD_DIM, BLOCK_SIZE, HEAD_DIM, KEYS, DIM, REST, WHOLE,
    )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, query_rest, key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc,
        positions, context, upper, stop, scale, window, key_stride,
        True, NUM_KV_HEADS * HEAD_DIM, BLOCK_SIZE, HEAD_DIM, MASKED_KEYS, DIM, REST, WHOLE,
    )  # fmt: skip

    # A part in which a row sees nothing has sum 0 and a log-sum-exp of minus infinity.
    columns = tl.arange(0, WHOLE)
    result = (acc / tl.where(total > 0, total, 1.0)[:, None]).to(out_ptr.dtype.element_ty)
    out_rows = places * PARTS + tl.program_id(1)
    mask = stored[:, None] & (columns < HEAD_DIM)[None, :]
    tl.store(out_ptr + out_rows[:, None] * HEAD_DIM + columns[None, :], result, mask=mask)
    if PARTS > 1:
        tl.store(lse_ptr + out_rows, peak + tl.log2(total), mask=stored)


@triton.jit
def _merge(partial_ptr, lse_ptr, out_ptr, HEAD_DIM: tl.constexpr, PARTS: tl.constexpr, WHOLE: tl.constexpr):
    """Weighted mean of the parts of one token and head. At least one of them has keys."""
    row = tl.program_id(0).to(tl.int64)
    parts = row * PARTS + tl.arange(0, PARTS)
    columns = tl.arange(0, WHOLE)
    lse = tl.load(lse_ptr + parts)
    weights = tl.exp2(lse - tl.max(lse, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    partial = _load_columns(partial_ptr + parts * HEAD_DIM, weights, False, 0, WHOLE, HEAD_DIM)
    merged = tl.sum(partial * weights[:, None], axis=0)
    tl.store(out_ptr + row * HEAD_DIM + columns, merged.to(out_ptr.dtype.element_ty), mask=columns < HEAD_DIM)


def _split_row(head_dim: int) -> tuple[int, int]:
    """Return two powers of two that hold a row, the second 0 where one alone is no longer than both."""
    whole = max(16, triton.next_power_of_2(head_dim))
    half = whole // 2
    rest = max(16, triton.next_power_of_2(max(1, head_dim - half)))
    return (half, rest) if half >= 32 and half + rest < whole else (whole, 0)


def _shape(rows_each: int, whole: int, item_bytes: int) -> tuple[int, int]:
    """Return rows and keys of a tile for `rows_each` rows of a mean sequence and `whole` values of a padded row.

    float32 takes three TF32 products on NVIDIA, with two numbers of each query in registers: of 64 rows of 128 values,
    they are half of them. Short sequences would leave most of 128 rows empty. Keys and values of one step take 32 KiB
    at most, of two 64 KiB.
    """
    if item_bytes == 4:
        most, keys = 64 if whole <= 128 else 16, 16
    elif whole > 128:
        most, keys = 64, 32
    else:
        most, keys = 128 if rows_each > 64 else 64, 64
    return min(most, max(16, triton.next_power_of_2(rows_each))), keys


def _parts(programs: int, max_length: int, keys: int) -> int:
    """Return into how many parts to cut the keys, a power of two."""
    limit = max(1, min(ENOUGH_PROGRAMS // programs, max_length // (TILES_PER_PART * keys), MAX_PARTS))
    return 1 << (limit.bit_length() - 1)


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
    whole = max(16, triton.next_power_of_2(head_dim))
    dim, rest = _split_row(head_dim)
    # Heads of a tile: a power of two that divides the group, so that no row of a tile is left over.
    group = num_heads // num_kv_heads
    heads = group & -group
    rows, keys = _shape(triton.cdiv(num_tokens, num_seqs) * heads, whole, query.element_size())
    heads = min(heads, rows)
    programs = (num_tokens // (rows // heads) + num_seqs) * (num_heads // heads)
    window = sliding_window or max_blocks * block_size + num_tokens
    parts = _parts(programs, min(window, max_blocks * block_size), keys)
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_tokens, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_tokens, num_heads, parts), dtype=torch.float32, device=out.device)
    _prefill_tile[(programs, parts)](
        query,
        key,
        value,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        context_lens,
        partial,
        lse,
        sm_scale * LOG2_E,
        window,
        query.stride(0),
        key.stride(0),
        num_seqs,
        max_blocks,
        WINDOWED=sliding_window > 0,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEADS=heads,
        BLOCK_SIZE=block_size,
        HEAD_DIM=head_dim,
        SEQS=triton.next_power_of_2(num_seqs),
        PARTS=parts,
        ROWS=rows,
        KEYS=keys,
        DIM=dim,
        REST=rest,
        WHOLE=whole,
        num_warps=8 if rows == 128 else 4,
        # On NVIDIA one stage each for places, for keys and values, and for products. AMD has 64 KiB a workgroup.
        num_stages=2 if torch.version.hip else 3,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, lse, out, HEAD_DIM=head_dim, PARTS=parts, WHOLE=whole)
