"""Paged attention of a mixed batch, by the query heads of one key head together and in parts where programs are few.

Rows of a tile are the new tokens of a sequence times the heads of a group: prefills get tall tiles, decodes short
ones of the same launch. Where sequences and heads alone would not fill a GPU, keys are cut into parts, whose results a
second kernel merges (Flash-Decoding, Dao et al., 2023). Numbers of heads and sizes of rows and blocks are constants.
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
def _find_tile(cu_seqlens_ptr, tile, num_seqs, TOKENS, STEPS: tl.constexpr):
    """Sequence s owns tiles cu_seqlens[s] // TOKENS + s and up."""
    lower = 0
    upper = num_seqs - 1
    for _ in range(STEPS):
        middle = (lower + upper + 1) // 2
        starts = tl.load(cu_seqlens_ptr + middle) // TOKENS + middle <= tile
        lower = tl.where(starts, middle, lower)
        upper = tl.where(starts, upper, middle - 1)
    return lower


@triton.jit
def _weigh(weights, values, acc):
    """acc + weights @ values, the weights being split in two: one number of the values' dtype is not exact enough."""
    high = weights.to(values.dtype)
    acc = tl.dot(high, values, acc, input_precision=PRECISION)
    if values.dtype != tl.float32:
        low = (weights - high.to(tl.float32)).to(values.dtype)
        acc = tl.dot(low, values, acc)
    return acc


@triton.jit
def _attend_rows(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    table_row,
    out_ptr,
    lse_ptr,
    scale,
    softcap,
    window,
    begin,
    query_len,
    length,
    first,
    tokens_of_tile,
    kv_head,
    part,
    query_stride,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    CAPPED: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    """One part of the keys for one tile of rows. With one part `out` is final; scores are of base 2."""
    group = NUM_HEADS // NUM_KV_HEADS
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    inside_dims = (dims < HEAD_DIM)[None, :]
    new = first + rows // group
    stored = (rows < tokens_of_tile * group) & (new < query_len)
    places = (begin + new).to(tl.int64) * NUM_HEADS + kv_head * group + rows % group
    mask = stored[:, None] & inside_dims
    query_rows = (begin + new).to(tl.int64) * query_stride + (kv_head * group + rows % group) * HEAD_DIM
    query = tl.load(query_ptr + query_rows[:, None] + dims[None, :], mask=mask, other=0.0)

    context = length - query_len
    positions = context + new
    end = context + tl.minimum(first + tokens_of_tile, query_len)
    start = tl.maximum(context + first - window + 1, 0) // TILE * TILE
    part_length = tl.cdiv(tl.cdiv(end - start, PARTS), TILE) * TILE
    start += part * part_length
    stop = tl.minimum(start + part_length, end)
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for at in range(start, stop, TILE):
        tokens = at + tl.arange(0, TILE)
        inside = tokens < end
        blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside, other=0)
        slots = blocks.to(tl.int64) * BLOCK_SIZE + tokens % BLOCK_SIZE
        offsets = ((slots * NUM_KV_HEADS + kv_head) * HEAD_DIM)[:, None] + dims[None, :]
        kv_mask = inside[:, None] & inside_dims
        keys = tl.load(key_cache_ptr + offsets, mask=kv_mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=kv_mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION) * scale
        if CAPPED:
            scores = softcap * (1.0 - 2.0 * tl.sigmoid(-2.0 * scores / softcap))
        behind = positions[:, None] - tokens[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        acc = _weigh(weights, values, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    # A part in which a row sees nothing has sum 0 and a log-sum-exp of minus infinity.
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    out_rows = places * PARTS + part
    result = result.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_rows[:, None] * HEAD_DIM + dims[None, :], result, mask=mask)
    if PARTS > 1:
        tl.store(lse_ptr + out_rows, peak + tl.log2(total), mask=stored)


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
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    CAPPED: tl.constexpr,
    STEPS: tl.constexpr,
    PARTS: tl.constexpr,
    SHORT: tl.constexpr,
    TALL: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    group = NUM_HEADS // NUM_KV_HEADS
    tokens_of_tile = TALL // group
    tile = tl.program_id(0) // NUM_KV_HEADS
    kv_head = tl.program_id(0) % NUM_KV_HEADS
    seq = _find_tile(cu_seqlens_ptr, tile, num_seqs, tokens_of_tile, STEPS)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first = (tile - begin // tokens_of_tile - seq) * tokens_of_tile
    length = tl.load(seq_lens_ptr + seq)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    if first < query_len:
        if (query_len - first) * group <= SHORT:
            _attend_rows(
                query_ptr,
                key_cache_ptr,
                value_cache_ptr,
                table_row,
                out_ptr,
                lse_ptr,
                scale,
                softcap,
                window,
                begin,
                query_len,
                length,
                first,
                SHORT // group,
                kv_head,
                tl.program_id(1),
                query_stride,
                NUM_HEADS,
                NUM_KV_HEADS,
                HEAD_DIM,
                BLOCK_SIZE,
                CAPPED,
                PARTS,
                SHORT,
                TILE,
                DIM,
            )
        else:
            _attend_rows(
                query_ptr,
                key_cache_ptr,
                value_cache_ptr,
                table_row,
                out_ptr,
                lse_ptr,
                scale,
                softcap,
                window,
                begin,
                query_len,
                length,
                first,
                tokens_of_tile,
                kv_head,
                tl.program_id(1),
                query_stride,
                NUM_HEADS,
                NUM_KV_HEADS,
                HEAD_DIM,
                BLOCK_SIZE,
                CAPPED,
                PARTS,
                TALL,
                TILE,
                DIM,
            )


@triton.jit
def _merge(partial_ptr, lse_ptr, out_ptr, head_dim, PARTS: tl.constexpr, DIM: tl.constexpr):
    """Weighted mean of the parts of one token and head. At least one of them has keys."""
    row = tl.program_id(0).to(tl.int64)
    parts = row * PARTS + tl.arange(0, PARTS)
    dims = tl.arange(0, DIM)
    lse = tl.load(lse_ptr + parts)
    weights = tl.exp2(lse - tl.max(lse, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    inside = (dims < head_dim)[None, :]
    partial = tl.load(partial_ptr + parts[:, None] * head_dim + dims[None, :], mask=inside, other=0.0)
    merged = tl.sum(partial * weights[:, None], axis=0)
    tl.store(out_ptr + row * head_dim + dims, merged.to(out_ptr.dtype.element_ty), mask=dims < head_dim)


def _shape(tokens_each: int, group: int, dim: int, item_bytes: int) -> tuple[int, int, int]:
    """Rows of a short and of a tall tile, and keys of both.

    float32 takes three TF32 products on NVIDIA, with two numbers of each query in registers: 64 rows of 128 values and
    16 keys are what fits there without a second stage.
    """
    least = max(16, triton.next_power_of_2(group))
    if item_bytes == 4:
        most, tile = 64 if dim <= 128 else 32, 32 if dim <= 64 else 16
    else:
        most, tile = (128, 64) if dim <= 128 else (64, 32)
    tall = max(least, most if tokens_each > 1 else least)
    return least, tall, tile


def _parts(programs: int, max_length: int, tile: int) -> int:
    """Into how many parts to cut the keys; a power of two."""
    wanted = triton.cdiv(ENOUGH_PROGRAMS, programs)
    useful = triton.cdiv(max_length, TILES_PER_PART * tile)
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
    short, tall, tile = _shape(triton.cdiv(num_tokens, num_seqs), group, dim, query.element_size())
    programs = (num_tokens // (tall // group) + num_seqs) * num_kv_heads
    window = sliding_window or max_blocks * block_size
    parts = _parts(programs, min(window, max_blocks * block_size), tile)
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_tokens, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_tokens, num_heads, parts), dtype=torch.float32, device=out.device)
    _attend[(programs, parts)](
        query,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        seq_lens,
        partial,
        lse,
        sm_scale * LOG2_E,
        softcap * LOG2_E,
        window,
        query.stride(0),
        num_seqs,
        max_blocks,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        BLOCK_SIZE=block_size,
        CAPPED=softcap > 0,
        STEPS=num_seqs.bit_length(),
        PARTS=parts,
        SHORT=short,
        TALL=tall,
        TILE=tile,
        DIM=dim,
        num_warps=8 if tall >= 128 and dim >= 128 else 4,
        num_stages=1 if query.element_size() == 4 else 2,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, lse, out, head_dim, PARTS=parts, DIM=dim)
