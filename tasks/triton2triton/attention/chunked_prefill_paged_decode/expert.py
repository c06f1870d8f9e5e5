"""Paged decode attention that reads the cache once per group of query heads, split along long sequences.

Sizes are constants, so that rows are read in whole vectors and tokens need no division.

The query heads that share a key head form the rows of one matrix product. Where sequences and heads alone would not
fill a GPU, each sequence is cut into parts whose results a second kernel merges by their log-sum-exp (Flash-Decoding,
Dao et al., 2023).
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 2048  # five times as many as run at once, since sequences differ in length
MAX_PARTS = 64
TILE_BYTES = 16384
ACC_ELEMENTS = 8192
LOG2_E = 1.4426950408889634


@triton.jit
def _attend(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    seq_lens_ptr,
    out_ptr,
    lse_ptr,
    scale,
    max_blocks,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    PARTS: tl.constexpr,
    ALONE: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Part of a sequence for up to ROWS query heads of one group. With one part, `out` is final; scores are base 2.

    ALONE: the group has one head, whose products are sums over a row, in place of a product with 15 rows of padding.
    """
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    ROW_TILES: tl.constexpr = (GROUP + ROWS - 1) // ROWS
    seq = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1) // ROW_TILES
    rows = tl.program_id(1) % ROW_TILES * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(2)
    dims = tl.arange(0, DIM)
    query_rows = seq * NUM_HEADS + kv_head * GROUP + rows
    row_mask = (rows < GROUP)[:, None] & (dims < HEAD_DIM)[None, :]
    query = tl.load(query_ptr + query_rows[:, None] * HEAD_DIM + dims[None, :], mask=row_mask, other=0.0)
    key_cache_ptr += kv_head * HEAD_DIM
    value_cache_ptr += kv_head * HEAD_DIM
    table_row = block_table_ptr + seq * max_blocks

    length = tl.load(seq_lens_ptr + seq)
    part_length = tl.cdiv(tl.cdiv(length, PARTS), TILE) * TILE
    begin = part * part_length
    end = tl.minimum(begin + part_length, length)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    steps = tl.arange(0, TILE)
    for start in tl.range(begin, end, TILE, num_stages=STAGES):
        inside = start + steps < end
        # Numbers of tokens of a tile and of a block are powers of two, and `start` is a multiple of the first.
        blocks = tl.load(table_row + start // BLOCK_SIZE + steps // BLOCK_SIZE, mask=inside, other=0)
        slots = blocks * BLOCK_SIZE + start % BLOCK_SIZE + steps % BLOCK_SIZE
        offsets = (slots.to(tl.int64) * (NUM_KV_HEADS * HEAD_DIM))[:, None] + dims[None, :]
        mask = inside[:, None] & (dims < HEAD_DIM)[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0)
        if ALONE:
            scores = tl.sum(query * keys, axis=1)[None, :] * scale
        else:
            scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION) * scale
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        if ALONE:
            acc = acc * shrink[:, None] + tl.sum(tl.trans(weights) * values, axis=0)[None, :]
        else:
            acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    # A part beyond the sequence saw nothing: its sum is 0 and its log-sum-exp minus infinity.
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    result_rows = query_rows * PARTS + part
    result = result.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + result_rows[:, None] * HEAD_DIM + dims[None, :], result, mask=row_mask)
    if PARTS > 1:
        lse = tl.where(total > 0, peak + tl.log2(tl.where(total > 0, total, 1.0)), -float("inf"))
        tl.store(lse_ptr + result_rows, lse, mask=rows < GROUP)


@triton.jit
def _merge(partial_ptr, lse_ptr, out_ptr, head_dim, PARTS: tl.constexpr, DIM: tl.constexpr):
    """Weighted mean of the parts of one query head. The first part is never empty."""
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


def _parts(programs: int, max_tokens: int, tile: int) -> int:
    """Into how many parts to cut each sequence; a power of two."""
    wanted = triton.cdiv(ENOUGH_PROGRAMS, programs)
    useful = triton.cdiv(max_tokens, tile)
    limit = max(1, min(wanted, useful, MAX_PARTS))
    return 1 << (limit.bit_length() - 1)


def chunked_prefill_paged_decode(query, key_cache, value_cache, block_table, seq_lens, sm_scale, out):
    num_seqs, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    max_blocks = block_table.shape[1]
    group = num_heads // num_kv_heads
    dim = max(16, triton.next_power_of_2(head_dim))
    alone = group == 1 and query.element_size() == 4  # with 16 bits, matrix units multiply the padding
    rows = 1 if alone else max(16, min(ACC_ELEMENTS // dim, triton.next_power_of_2(group)))
    tile = max(16, min(64, TILE_BYTES // (dim * query.element_size())))
    programs = num_kv_heads * triton.cdiv(group, rows)
    parts = _parts(num_seqs * programs, max_blocks * block_size, tile)
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_seqs, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_seqs, num_heads, parts), dtype=torch.float32, device=out.device)
    _attend[(num_seqs, programs, parts)](
        query,
        key_cache,
        value_cache,
        block_table,
        seq_lens,
        partial,
        lse,
        sm_scale * LOG2_E,
        max_blocks,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        BLOCK_SIZE=block_size,
        ROWS=rows,
        TILE=tile,
        DIM=dim,
        PARTS=parts,
        ALONE=alone,
        # On NVIDIA keys and values are loaded one step ahead, and entries of the table before them. With five stages
        # they are two steps ahead, and an H200 is 1.5 % slower with long sequences. AMD has 64 KiB a workgroup.
        STAGES=None if torch.version.hip else 3,
        num_warps=4,
        num_stages=2,
    )
    if parts > 1:
        _merge[(num_seqs * num_heads,)](partial, lse, out, head_dim, PARTS=parts, DIM=dim)
