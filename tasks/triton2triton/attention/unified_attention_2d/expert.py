"""Paged attention of a mixed batch, by the query heads of one key head together and in parts where programs are few.

Rows of a tile are the new tokens of a sequence times the heads of a group. What the baseline wastes, and what is done
instead:

- It gives prefills and decodes the same tile. Here prefills get tall tiles, whose rows read each key once, and decodes
  short ones of another launch, which leave room for several programs on a multiprocessor.
- Each of its steps waits for its keys. Here the next two blocks are in flight.
- It masks every block. Here blocks that all rows of a tall tile see have no mask.
- Its programs start in the order of the sequences. Here those with the most keys start first.
- Few sequences leave most of a GPU empty. Here their keys are cut into parts, whose results a second kernel merges
  (Flash-Decoding, Dao et al., 2023).

Scores are in base 2, whose exponential is one instruction. sm_scale is positive: the highest score is scaled, not each.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 512
ENOUGH_SHORT_PROGRAMS = 1024  # two share a multiprocessor
MAX_PARTS = 64
TILES_PER_PART = 8
MOST_SORTED = tl.constexpr(64)  # sequences: their order takes as many comparisons as there are pairs
MERGED_ROWS = 4
LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def _find_tile(
    cu_seqlens_ptr,
    seq_lens_ptr,
    tile,
    num_seqs,
    TOKENS: tl.constexpr,
    MOST_SHORT: tl.constexpr,
    SHORT: tl.constexpr,
    SEQS: tl.constexpr,
):
    """Return the sequence of a tile and its first token, below 0 for none. Sequences with the most keys come first.

    SHORT: only those of at most MOST_SHORT new tokens have tiles, else only the others.
    """
    seqs = tl.arange(0, SEQS)
    begins = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0)
    lengths = tl.load(cu_seqlens_ptr + 1 + seqs, mask=seqs < num_seqs, other=0) - begins
    tiles = tl.where((lengths <= MOST_SHORT) == SHORT, tl.cdiv(lengths, TOKENS), 0)
    if SEQS <= MOST_SORTED:
        keys = tl.load(seq_lens_ptr + seqs, mask=seqs < num_seqs, other=0)
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
def _load_rows(rows, inside, MASKED: tl.constexpr, HEAD_DIM: tl.constexpr, DIM: tl.constexpr):
    """Rows of HEAD_DIM values, padded with zeros to DIM."""
    dims = tl.arange(0, DIM)
    pointers = rows[:, None] + dims[None, :]
    if MASKED:
        return tl.load(pointers, mask=inside[:, None] & (dims < HEAD_DIM)[None, :], other=0.0)
    if HEAD_DIM < DIM:
        return tl.load(pointers, mask=(dims < HEAD_DIM)[None, :], other=0.0)
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
    start,
    stop,
    lower,
    upper,
    scale,
    softcap,
    window,
    MASKED: tl.constexpr,
    WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    STAGES: tl.constexpr,
):
    """The online softmax over blocks in lower … upper - 1, which all rows see; if MASKED, over all others instead."""
    steps = tl.arange(0, KEYS)
    first = start if MASKED else lower
    last = stop - (upper - lower) if MASKED else upper
    for block in tl.range(first, last, KEYS, num_stages=STAGES):
        at = block
        if MASKED:
            at += tl.where(at >= lower, upper - lower, 0)
        tokens = at + steps
        inside = tokens < stop
        # Numbers of keys and of tokens of a block are powers of two, and `at` is a multiple of the first.
        entries = table_row + at // BLOCK_SIZE + steps // BLOCK_SIZE
        if MASKED:
            pages = tl.load(entries, mask=inside, other=0)
        else:
            pages = tl.load(entries)
        slots = pages * BLOCK_SIZE + at % BLOCK_SIZE + steps % BLOCK_SIZE
        places = slots.to(tl.int64) * SLOT_STRIDE
        keys = _load_rows(key_cache_ptr + places, inside, MASKED, HEAD_DIM, DIM)
        values = _load_rows(value_cache_ptr + places, inside, MASKED, HEAD_DIM, DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION)
        factor = scale
        if CAPPED:
            # softcap * tanh(scores * scale / softcap), all in base 2
            growth = tl.exp2(scores * (2 * LOG2_E * scale / softcap))
            scores = softcap - 2 * softcap / (growth + 1)
            factor = 1.0
        if MASKED:
            seen = tokens[None, :] <= tl.minimum(positions, stop - 1)[:, None]
            if WINDOWED:
                seen = seen & (tokens[None, :] > (positions - window)[:, None])
            scores = tl.where(seen, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * factor)
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores * factor - new_peak[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit
def _attend(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    out_ptr,
    lse_ptr,
    scale,
    softcap,
    window,
    query_stride,
    num_seqs,
    max_blocks,
    CAPPED: tl.constexpr,
    WINDOWED: tl.constexpr,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    SEQS: tl.constexpr,
    MOST_SHORT: tl.constexpr,
    SHORT: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    STAGES: tl.constexpr,
):
    """One part of the keys for one tile of rows. With one part `out` is final."""
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    TOKENS: tl.constexpr = ROWS // GROUP
    SLOT_STRIDE: tl.constexpr = NUM_KV_HEADS * HEAD_DIM
    tile = tl.program_id(0) // NUM_KV_HEADS
    kv_head = tl.program_id(0) % NUM_KV_HEADS
    seq, first = _find_tile(cu_seqlens_ptr, seq_lens_ptr, tile, num_seqs, TOKENS, MOST_SHORT, SHORT, SEQS)
    if first < 0:
        return

    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    context = tl.load(seq_lens_ptr + seq) - query_len
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    rows = tl.arange(0, ROWS)
    new = first + rows // GROUP
    stored = (rows < TOKENS * GROUP) & (new < query_len)
    heads = kv_head * GROUP + rows % GROUP
    query_rows = query_ptr + (begin + new).to(tl.int64) * query_stride + heads * HEAD_DIM
    query = _load_rows(query_rows, stored, True, HEAD_DIM, DIM)
    key_cache_ptr += kv_head * HEAD_DIM
    value_cache_ptr += kv_head * HEAD_DIM

    positions = context + new
    end = context + tl.minimum(first + TOKENS, query_len)
    start = tl.maximum(context + first - window + 1, 0) // KEYS * KEYS
    part_length = tl.cdiv(tl.cdiv(end - start, PARTS), KEYS) * KEYS
    start += tl.program_id(1) * part_length
    stop = tl.minimum(start + part_length, end)
    # All rows see the blocks from `lower` to `upper`. Others need a mask. Masks of a short tile cost little.
    upper = start
    if not SHORT:
        upper = tl.maximum(start, tl.minimum((context + first + 1) // KEYS * KEYS, stop))
    lower = start
    if WINDOWED:
        lower = tl.minimum(tl.maximum(start, tl.cdiv(tl.maximum(end - window, 0), KEYS) * KEYS), upper)
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    if not SHORT:
        peak, total, acc = _attend_keys(
            query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions,
            start, stop, lower, upper, scale, softcap, window,
            False, WINDOWED, CAPPED, SLOT_STRIDE, BLOCK_SIZE, HEAD_DIM, KEYS, DIM, STAGES,
        )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, positions,
        start, stop, lower, upper, scale, softcap, window,
        True, WINDOWED, CAPPED, SLOT_STRIDE, BLOCK_SIZE, HEAD_DIM, KEYS, DIM, STAGES,
    )  # fmt: skip

    # A part in which a row sees nothing has sum 0 and a log-sum-exp of minus infinity.
    result = (acc / tl.where(total > 0, total, 1.0)[:, None]).to(out_ptr.dtype.element_ty)
    out_rows = (begin + new).to(tl.int64) * NUM_HEADS + heads
    if PARTS > 1:
        out_rows = (tl.program_id(0).to(tl.int64) * ROWS + rows) * PARTS + tl.program_id(1)
        tl.store(lse_ptr + out_rows, peak + tl.log2(total), mask=stored)
    dims = tl.arange(0, DIM)
    mask = stored[:, None] & (dims < HEAD_DIM)[None, :]
    tl.store(out_ptr + out_rows[:, None] * HEAD_DIM + dims[None, :], result, mask=mask)


@triton.jit
def _merge(
    partial_ptr,
    lse_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    out_ptr,
    num_seqs,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SEQS: tl.constexpr,
    MOST_SHORT: tl.constexpr,
    SHORT: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    SOME: tl.constexpr,
    DIM: tl.constexpr,
):
    """Weighted mean of the parts of some rows of a tile. At least one part of a row has keys."""
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    TOKENS: tl.constexpr = ROWS // GROUP
    tile = tl.program_id(0) // NUM_KV_HEADS
    seq, first = _find_tile(cu_seqlens_ptr, seq_lens_ptr, tile, num_seqs, TOKENS, MOST_SHORT, SHORT, SEQS)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    rows = tl.program_id(1) * SOME + tl.arange(0, SOME)
    new = first + rows // GROUP
    stored = (rows < TOKENS * GROUP) & (new < query_len) & (first >= 0)
    if tl.max(stored.to(tl.int32), axis=0) == 0:
        return
    parts = (tl.program_id(0).to(tl.int64) * ROWS + rows) * PARTS
    lse = tl.load(lse_ptr + parts[:, None] + tl.arange(0, PARTS)[None, :], mask=stored[:, None], other=0.0)
    peak = tl.max(lse, axis=1)
    total = tl.sum(tl.exp2(lse - peak[:, None]), axis=1)
    dims = tl.arange(0, DIM)
    mask = stored[:, None] & (dims < HEAD_DIM)[None, :]
    merged = tl.zeros((SOME, DIM), tl.float32)
    for part in range(PARTS):
        weight = tl.exp2(tl.load(lse_ptr + parts + part, mask=stored, other=0.0) - peak) / total
        partial = tl.load(partial_ptr + (parts + part)[:, None] * HEAD_DIM + dims[None, :], mask=mask, other=0.0)
        merged += partial * weight[:, None]
    heads = tl.program_id(0) % NUM_KV_HEADS * GROUP + rows % GROUP
    out_rows = (begin + new).to(tl.int64) * NUM_HEADS + heads
    tl.store(out_ptr + out_rows[:, None] * HEAD_DIM + dims[None, :], merged.to(out_ptr.dtype.element_ty), mask=mask)


def _tall(most_rows: int, group: int, dim: int, item_bytes: int) -> int:
    """Return the rows of a tall tile of at most `most_rows` rows.

    float32 takes three TF32 products on NVIDIA, with two numbers of each query in registers: of 64 rows of 128 values
    and 16 keys, they are half of them. AMD has 64 KiB a workgroup for 64 rows of 256 values.
    """
    if item_bytes == 4:
        most = 64 if dim <= 128 else 32
    else:
        most = 64 if dim > 128 and torch.version.hip else 128
    return max(min(most, triton.next_power_of_2(most_rows)), 16, triton.next_power_of_2(group))


def _parts(programs: int, enough: int, max_length: int, keys: int) -> int:
    """Into how many parts to cut the keys; a power of two."""
    wanted = triton.cdiv(enough, programs)
    useful = triton.cdiv(max_length, TILES_PER_PART * keys)
    limit = max(1, min(wanted, useful, MAX_PARTS))
    return 1 << (limit.bit_length() - 1)


def unified_attention_2d(
    query, key_cache, value_cache, block_table, cu_seqlens, seq_lens, sm_scale, softcap, sliding_window, out
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    group = num_heads // num_kv_heads
    dim = max(16, triton.next_power_of_2(head_dim))
    item_bytes = query.element_size()
    keys = (64 if dim <= 128 else 32) if item_bytes == 2 else (32 if dim <= 64 else 16)
    window = sliding_window or max_blocks * block_size
    short = max(16, triton.next_power_of_2(group))
    most_short = short // group
    tall = _tall(num_tokens * group, group, dim, item_bytes)
    tall_seqs = min(num_seqs, num_tokens // (most_short + 1))
    tall_tiles = num_tokens // (tall // group) + tall_seqs if tall_seqs else 0
    shared = {
        "NUM_HEADS": num_heads,
        "NUM_KV_HEADS": num_kv_heads,
        "HEAD_DIM": head_dim,
        "SEQS": triton.next_power_of_2(num_seqs),
        "MOST_SHORT": most_short,
        "DIM": dim,
    }
    for is_short in (False, True) if tall_tiles else (True,):
        rows = short if is_short else tall
        programs = (num_seqs if is_short else tall_tiles) * num_kv_heads
        enough = ENOUGH_SHORT_PROGRAMS if is_short else ENOUGH_PROGRAMS
        parts = _parts(programs, enough, min(window, max_blocks * block_size), keys)
        partial, lse = out, out
        if parts > 1:
            partial = torch.empty((programs, rows, parts, head_dim), dtype=torch.float32, device=out.device)
            lse = torch.empty((programs, rows, parts), dtype=torch.float32, device=out.device)
        tile = shared | {"SHORT": is_short, "PARTS": parts, "ROWS": rows}
        _attend[(programs, parts)](
            query,
            key_cache,
            value_cache,
            block_table,
            cu_seqlens,
            seq_lens,
            partial,
            lse,
            sm_scale * LOG2_E.value,
            softcap * LOG2_E.value,
            window,
            query.stride(0),
            num_seqs,
            max_blocks,
            CAPPED=softcap > 0,
            WINDOWED=sliding_window > 0,
            BLOCK_SIZE=block_size,
            KEYS=keys,
            # On NVIDIA entries of the table are loaded four steps ahead, keys and values two.
            STAGES=2 if torch.version.hip else 5,
            num_warps=8 if rows == 128 else 4,
            **tile,
        )
        if parts > 1:
            grid = (programs, rows // MERGED_ROWS)
            _merge[grid](partial, lse, cu_seqlens, seq_lens, out, num_seqs, SOME=MERGED_ROWS, **tile)
