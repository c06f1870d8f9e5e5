"""Tree attention in parts of each context, merged by a second kernel (Flash-Decoding, Dao et al., 2023).

What the baseline wastes, and what is done instead:

- Few sequences with eight key heads leave most of a GPU empty. Here programs share a context, and the first part of
  each takes the tree as well.
- It reads the context once for each tile of 64 rows. On NVIDIA a program has up to 128 rows here: half the reads for
  a tree of 64 nodes and four query heads a key head, and small trees take tiles of 16 or 32 rows.
- It masks every tile of the context. Here only the last tile of a part has a mask, and sizes are constants.
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
ENOUGH_PROGRAMS = 608 if torch.version.hip else 264
MAX_PARTS = 32
TILES_PER_PART = 2


@triton.jit
def _step(query, key, value, seen, peak, total, acc, scale, MASKED: tl.constexpr):
    """One tile of the online softmax, in base 2; rows may have seen nothing so far."""
    scores = tl.dot(query, key.T)
    if MASKED:
        scores = tl.where(seen, scores, -float("inf"))
    new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
    shift = tl.where(new_peak > -float("inf"), new_peak, 0.0)
    weights = tl.exp2(scores * scale - shift[:, None])
    shrink = tl.exp2(peak - shift)
    total = total * shrink + tl.sum(weights, axis=1)
    acc = tl.dot(weights.to(value.dtype), value, acc * shrink[:, None])
    return new_peak, total, acc


@triton.jit
def _context(
    query,
    key_cache_ptr,
    value_cache_ptr,
    table_ptr,
    kv_head,
    peak,
    total,
    acc,
    first,
    last,
    scale,
    MASKED: tl.constexpr,
    KV_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
):
    dims = tl.arange(0, DIM)
    for start in range(first, last, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < last
        if MASKED:
            blocks = tl.load(table_ptr + tokens // BLOCK_SIZE, mask=inside, other=0)
        else:
            blocks = tl.load(table_ptr + tokens // BLOCK_SIZE)
        slots = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE).to(tl.int64)
        places = ((slots * KV_HEADS + kv_head) * DIM)[:, None] + dims[None, :]
        if MASKED:
            key = tl.load(key_cache_ptr + places, mask=inside[:, None], other=0.0)
            value = tl.load(value_cache_ptr + places, mask=inside[:, None], other=0.0)
        else:
            key = tl.load(key_cache_ptr + places)
            value = tl.load(value_cache_ptr + places)
        peak, total, acc = _step(query, key, value, inside[None, :], peak, total, acc, scale, MASKED)
    return peak, total, acc


@triton.jit
def _attend_part(
    query_ptr,
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    tree_mask_ptr,
    block_table_ptr,
    context_lens_ptr,
    out_ptr,
    lse_ptr,
    scale,
    tree_len,
    max_blocks,
    PARTS: tl.constexpr,
    GROUP: tl.constexpr,
    KV_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    """One part of a context, and in the first part the tree. With one part `out` is final."""
    part = tl.program_id(0) % PARTS
    rows = tl.program_id(0) // PARTS * ROWS + tl.arange(0, ROWS)
    kv_head = tl.program_id(1)
    seq = tl.program_id(2).to(tl.int64)
    present = rows < tree_len * GROUP
    nodes = rows // GROUP
    dims = tl.arange(0, DIM)
    lines = (seq * tree_len + nodes) * (KV_HEADS * GROUP) + kv_head * GROUP + rows % GROUP
    query = tl.load(query_ptr + lines[:, None] * DIM + dims[None, :], mask=present[:, None], other=0.0)
    context = tl.load(context_lens_ptr + seq)
    length = tl.cdiv(tl.cdiv(context, PARTS), TILE) * TILE
    begin = part * length
    end = tl.minimum(begin + length, context)
    whole = begin + tl.maximum(end - begin, 0) // TILE * TILE
    table_ptr = block_table_ptr + seq * max_blocks
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    peak, total, acc = _context(
        query, key_cache_ptr, value_cache_ptr, table_ptr, kv_head, peak, total, acc, begin, whole, scale,
        False, KV_HEADS, BLOCK_SIZE, DIM, TILE,
    )  # fmt: skip
    peak, total, acc = _context(
        query, key_cache_ptr, value_cache_ptr, table_ptr, kv_head, peak, total, acc, whole, end, scale,
        True, KV_HEADS, BLOCK_SIZE, DIM, TILE,
    )  # fmt: skip
    if part == 0:
        mask_ptr = tree_mask_ptr + seq * tree_len * tree_len
        for start in range(0, tree_len, TILE):
            tokens = start + tl.arange(0, TILE)
            inside = tokens < tree_len
            places = ((seq * tree_len + tokens) * KV_HEADS + kv_head)[:, None] * DIM + dims[None, :]
            key = tl.load(key_ptr + places, mask=inside[:, None], other=0.0)
            value = tl.load(value_ptr + places, mask=inside[:, None], other=0.0)
            both = present[:, None] & inside[None, :]
            seen = tl.load(mask_ptr + nodes[:, None] * tree_len + tokens[None, :], mask=both, other=0) != 0
            peak, total, acc = _step(query, key, value, seen, peak, total, acc, scale, True)

    # A part without tokens has total 0 and a log-sum-exp of minus infinity.
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    places = lines * PARTS + part
    tl.store(
        out_ptr + places[:, None] * DIM + dims[None, :], result.to(out_ptr.dtype.element_ty), mask=present[:, None]
    )
    if PARTS > 1:
        tl.store(lse_ptr + places, peak + tl.log2(total), mask=present)


@triton.jit
def _merge(partial_ptr, lse_ptr, out_ptr, PARTS: tl.constexpr, DIM: tl.constexpr):
    """Weighted mean of the parts of one head of one token."""
    line = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    dims = tl.arange(0, DIM)
    lse = tl.load(lse_ptr + line * PARTS + parts)
    weights = tl.exp2(lse - tl.max(lse, axis=0))
    partial = tl.load(partial_ptr + (line * PARTS + parts)[:, None] * DIM + dims[None, :])
    merged = tl.sum(partial * weights[:, None], axis=0) / tl.sum(weights, axis=0)
    tl.store(out_ptr + line * DIM + dims, merged.to(out_ptr.dtype.element_ty))


def tree_attention(query, key, value, key_cache, value_cache, tree_mask, block_table, context_lens, sm_scale, out):
    num_seqs, tree_len, _ = tree_mask.shape
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads, block_size = key.shape[1], key_cache.shape[1]
    group = num_heads // num_kv_heads
    most_rows = 64 if torch.version.hip else 128
    rows = max(16, min(triton.next_power_of_2(tree_len * group), most_rows))
    tile = 32 if torch.version.hip else 64
    row_tiles = triton.cdiv(tree_len * group, rows)
    wanted = triton.cdiv(ENOUGH_PROGRAMS, num_seqs * num_kv_heads * row_tiles)
    most_tokens = block_table.shape[1] * block_size
    limit = max(1, min(wanted, triton.cdiv(most_tokens, TILES_PER_PART * tile), MAX_PARTS))
    parts = triton.next_power_of_2(limit)
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_tokens, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_tokens, num_heads, parts), dtype=torch.float32, device=out.device)
    _attend_part[(row_tiles * parts, num_kv_heads, num_seqs)](
        query,
        key,
        value,
        key_cache,
        value_cache,
        tree_mask,
        block_table,
        context_lens,
        partial,
        lse,
        sm_scale * LOG2_E,
        tree_len,
        block_table.shape[1],
        PARTS=parts,
        GROUP=group,
        KV_HEADS=num_kv_heads,
        BLOCK_SIZE=block_size,
        DIM=head_dim,
        ROWS=rows,
        TILE=tile,
        num_warps=8 if rows == 128 else 4,
        num_stages=2,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, lse, out, PARTS=parts, DIM=head_dim)
