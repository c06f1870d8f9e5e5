"""Prefill over a paged prefix with tall tiles: up to 128 rows of tokens and query heads read each key once.

What the baseline wastes, and what is done instead:

- Each of its tiles of 32 tokens of one query head reads all keys. Here a tile has 64 or 128 rows, which are tokens
  times heads of one key head: keys and their places are read half to a quarter as often, and wgmma applies.
- Each of its steps waits for 32 keys. Here a step has 64, and the next two are in flight.
- It masks every block. Here whole blocks that all rows see have no mask, of the prefix and of the new tokens.
- It finds its sequence in a serial loop over all of them. Here all offsets are read at once and counted.
- Its programs start in the order of the sequences. Here those with the most keys start first.
- One sequence after a long prefix leaves most of a GPU empty. Here its keys are cut into parts, which a second kernel
  merges (Flash-Decoding, Dao et al., 2023).

Scores are in base 2, whose exponential is one instruction. sm_scale is positive: the highest score is scaled, not each.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 512
MAX_PARTS = 64
TILES_PER_PART = 8
MOST_SORTED = tl.constexpr(64)  # sequences: their order takes as many comparisons as there are pairs
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
def _find_tile(cu_seqlens_ptr, context_lens_ptr, tile, num_seqs, TOKENS: tl.constexpr, SEQS: tl.constexpr):
    """Return the sequence of a tile and its first token, below 0 for none. Sequences with the most keys come first."""
    seqs = tl.arange(0, SEQS)
    begins = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0)
    lengths = tl.load(cu_seqlens_ptr + 1 + seqs, mask=seqs < num_seqs, other=0) - begins
    tiles = tl.cdiv(lengths, TOKENS)
    if SEQS <= MOST_SORTED:
        keys = tl.load(context_lens_ptr + seqs, mask=seqs < num_seqs, other=0) + lengths
        ties = (keys[None, :] == keys[:, None]) & (seqs[None, :] < seqs[:, None])
        earlier = (keys[None, :] > keys[:, None]) | ties
        owned = tl.sum(tl.where(earlier, tiles[None, :], 0), axis=1)
    else:
        owned = tl.cumsum(tiles, axis=0) - tiles
    found = (owned <= tile) & (tile < owned + tiles)
    seq = tl.sum(tl.where(found, seqs, 0), axis=0)
    # The last tile of a sequence has the most keys.
    first = tl.sum(tl.where(found, (owned + tiles - tile) * TOKENS, 0), axis=0) - TOKENS
    return seq, first


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
    start,
    stop,
    lower,
    upper,
    middle,
    diagonal,
    scale,
    window,
    key_stride,
    KIND: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    WHOLE: tl.constexpr,
    STAGES: tl.constexpr,
):
    """The online softmax over blocks of positions, by KIND.

    "cached": those of the prefix in lower … upper - 1. "new": new tokens in middle … diagonal - 1. All rows see both.
    "masked": all other positions in start … stop - 1.
    """
    MASKED: tl.constexpr = KIND == "masked"
    first = lower if KIND == "cached" else (middle if KIND == "new" else start)
    last = upper if KIND == "cached" else (diagonal if KIND == "new" else stop - (upper - lower) - (diagonal - middle))
    steps = tl.arange(0, KEYS)
    for block in tl.range(first, last, KEYS, num_stages=STAGES):
        at = block
        if MASKED:
            at += tl.where(at >= lower, upper - lower, 0)
            at += tl.where(at >= middle, diagonal - middle, 0)
        tokens = at + steps
        inside = tokens < stop
        cached = tokens < context
        if KIND == "new":
            new_places = (tokens - context) * key_stride
            key_rows = key_ptr + new_places
            value_rows = value_ptr + new_places
        else:
            # Numbers of keys and of tokens of a block are powers of two, and `at` is a multiple of the first.
            entries = table_row + at // BLOCK_SIZE + steps // BLOCK_SIZE
            if MASKED:
                pages = tl.load(entries, mask=inside & cached, other=0)
            else:
                pages = tl.load(entries)
            slots = pages * BLOCK_SIZE + at % BLOCK_SIZE + steps % BLOCK_SIZE
            key_rows = key_cache_ptr + slots.to(tl.int64) * SLOT_STRIDE
            value_rows = value_cache_ptr + slots.to(tl.int64) * SLOT_STRIDE
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
        if MASKED:
            seen = tokens[None, :] <= tl.minimum(positions, stop - 1)[:, None]
            if WINDOWED:
                seen = seen & (tokens[None, :] > (positions - window)[:, None])
            scores = tl.where(seen, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores * scale - new_peak[:, None])
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
    STAGES: tl.constexpr,
):
    TOKENS: tl.constexpr = ROWS // HEADS
    SLOT_STRIDE: tl.constexpr = NUM_KV_HEADS * HEAD_DIM
    tile = tl.program_id(0) // (NUM_HEADS // HEADS)
    first_head = tl.program_id(0) % (NUM_HEADS // HEADS) * HEADS
    seq, first = _find_tile(cu_seqlens_ptr, context_lens_ptr, tile, num_seqs, TOKENS, SEQS)
    if first < 0:
        return

    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
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
    # All rows see the blocks before `causal` and, of a window, from `lower` on. Others need a mask.
    causal = tl.maximum(start, tl.minimum((context + first + 1) // KEYS * KEYS, stop))
    upper = tl.maximum(start, tl.minimum(context // KEYS * KEYS, causal))
    lower = start
    if WINDOWED:
        lower = tl.maximum(start, tl.cdiv(tl.maximum(end - window, 0), KEYS) * KEYS)
    middle = tl.minimum(tl.maximum(lower, tl.cdiv(context, KEYS) * KEYS), causal)
    lower = tl.minimum(lower, upper)
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, WHOLE), tl.float32)
    for kind in tl.static_range(3):
        peak, total, acc = _attend_keys(
            query, query_rest, key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc,
            positions, context, start, stop, lower, upper, middle, causal, scale, window, key_stride,
            "cached" if kind == 0 else ("new" if kind == 1 else "masked"), WINDOWED, SLOT_STRIDE, BLOCK_SIZE, HEAD_DIM,
            KEYS, DIM, REST, WHOLE, 3 if kind == 1 and STAGES > 3 else STAGES,
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
    at most: queries and three steps fit into 160 KiB. AMD has 64 KiB, too little for 128 rows of 256 values.
    """
    if item_bytes == 4:
        most, keys = 64 if whole <= 128 else 16, 16
    elif whole > 128:
        most, keys = 128 if rows_each > 64 and not torch.version.hip else 64, 32
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
        # On NVIDIA entries of the table are loaded four steps ahead, keys and values two. AMD has 64 KiB a workgroup.
        STAGES=2 if torch.version.hip else 5,
        num_warps=8 if rows == 128 else 4,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, lse, out, HEAD_DIM=head_dim, PARTS=parts, WHOLE=whole)
