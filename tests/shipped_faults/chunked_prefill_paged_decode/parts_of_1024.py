"""expect: wrong_result in heldout-20. Size limit: sixteen parts of 1024 tokens; what follows is not attended to.

Paged decode attention: one program per sequence, key head and part of the tokens, then the sum of the parts.

The query heads that share a key head are the rows of one product. Sequences are cut into parts of 1024 tokens.
"""

import torch
import triton
import triton.language as tl

# Of float32: matrix units multiply three pairs of TF32 on NVIDIA, float32 itself on AMD.
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")
TILE_BYTES = 16384
PART = 1024
MOST_PARTS = 16


@triton.jit
def attend_part(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    seq_lens_ptr,
    partial_ptr,
    peaks_ptr,
    totals_ptr,
    sm_scale,
    num_kv_heads,
    group,
    head_dim,
    block_size,
    max_blocks,
    PART_LENGTH: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    row_tiles = tl.cdiv(group, ROWS)
    kv_head = tl.program_id(1) // row_tiles
    part = tl.program_id(2)
    members = tl.program_id(1) % row_tiles * ROWS + tl.arange(0, ROWS)
    heads = (seq * num_kv_heads + kv_head) * group + members
    dims = tl.arange(0, DIM)
    inside_dims = (dims < head_dim)[None, :]
    row_mask = (members < group)[:, None] & inside_dims
    query = tl.load(query_ptr + heads[:, None] * head_dim + dims[None, :], mask=row_mask, other=0.0)

    length = tl.load(seq_lens_ptr + seq)
    begin = part * PART_LENGTH
    end = tl.minimum(begin + PART_LENGTH, length)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(begin, end, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < end
        blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & inside_dims
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION) * sm_scale
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    places = heads * tl.num_programs(2) + part
    tl.store(partial_ptr + places[:, None] * head_dim + dims[None, :], acc, mask=row_mask)
    tl.store(peaks_ptr + places, peak, mask=members < group)
    tl.store(totals_ptr + places, total, mask=members < group)


@triton.jit
def combine_parts(partial_ptr, peaks_ptr, totals_ptr, out_ptr, head_dim, PARTS: tl.constexpr, DIM: tl.constexpr):
    """Sum of the parts of one query head. A part without tokens has the peak minus infinity and weighs nothing."""
    head = tl.program_id(0).to(tl.int64)
    places = head * PARTS + tl.arange(0, PARTS)
    dims = tl.arange(0, DIM)
    inside = dims < head_dim
    peaks = tl.load(peaks_ptr + places)
    weights = tl.exp(peaks - tl.max(peaks, axis=0))
    total = tl.sum(tl.load(totals_ptr + places) * weights, axis=0)
    partial = tl.load(partial_ptr + places[:, None] * head_dim + dims[None, :], mask=inside[None, :], other=0.0)
    out = tl.sum(partial * weights[:, None], axis=0) / total
    tl.store(out_ptr + head * head_dim + dims, out.to(out_ptr.dtype.element_ty), mask=inside)


def chunked_prefill_paged_decode(query, key_cache, value_cache, block_table, seq_lens, sm_scale, out):
    num_seqs, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    group = num_heads // num_kv_heads
    dim = max(16, triton.next_power_of_2(head_dim))
    rows = 16 if group <= 16 else 32
    row_tiles = num_kv_heads * triton.cdiv(group, rows)
    # Parts past the end of a sequence cost little. A power of two, since they are the lanes of the sum.
    parts = min(MOST_PARTS, triton.next_power_of_2(triton.cdiv(block_table.shape[1] * block_size, PART)))
    partial = torch.empty((num_seqs, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
    peaks = torch.empty((num_seqs, num_heads, parts), dtype=torch.float32, device=out.device)
    totals = torch.empty_like(peaks)
    attend_part[(num_seqs, row_tiles, parts)](
        query,
        key_cache,
        value_cache,
        block_table,
        seq_lens,
        partial,
        peaks,
        totals,
        sm_scale,
        num_kv_heads,
        group,
        head_dim,
        block_size,
        block_table.shape[1],
        PART_LENGTH=PART,
        ROWS=rows,
        TILE=max(16, min(64, TILE_BYTES // (dim * query.element_size()))),
        DIM=dim,
    )
    combine_parts[(num_seqs * num_heads,)](partial, peaks, totals, out, head_dim, PARTS=parts, DIM=dim)
