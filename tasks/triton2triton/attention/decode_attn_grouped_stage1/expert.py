"""First stage of grouped split decode attention: more heads a program, and latent values that are read once.

What the baseline wastes, and what is done instead:

- It reads keys and values once for every 16 heads: 8 times for the 128 heads of one latent key head. On NVIDIA a
  program has up to 64 heads here: two reads, and wgmma in place of products of 16 rows.
- It reads latent values a second time, though they are the first part of their keys. Here both products take them from
  the same tile.
- It masks every tile by tokens and sizes that it learns at run time, and divides each token by the block size. Here
  sizes are constants, and only the last tile of a split has a mask.

Scores are in base 2, whose exponential is one instruction.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = 1.4426950408889634
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _load_columns(
    ptr, rows, inside, MASKED: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr
):
    """Columns FIRST … FIRST + WIDTH - 1 of rows of SIZE values; those past the end are zeros."""
    columns = FIRST + tl.arange(0, WIDTH)
    pointers = ptr + rows[:, None] + columns[None, :]
    if MASKED:
        return tl.load(pointers, mask=inside[:, None] & (columns < SIZE)[None, :], other=0.0)
    if FIRST + WIDTH > SIZE:
        return tl.load(pointers, mask=(columns < SIZE)[None, :], other=0.0)
    return tl.load(pointers)


@triton.jit
def _attend_keys(
    query,
    query_rest,
    key_cache_ptr,
    value_cache_ptr,
    table_row,
    peak,
    total,
    acc,
    first,
    last,
    scale,
    MASKED: tl.constexpr,
    LATENT: tl.constexpr,
    KEY_STRIDE: tl.constexpr,
    VALUE_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_HEAD_DIM: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    """The online softmax over tokens first … last - 1, in base 2."""
    for start in range(first, last, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < last
        if MASKED:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside, other=0)
        else:
            blocks = tl.load(table_row + tokens // BLOCK_SIZE)
        # At most 2**24 slots: the product with the stride alone needs 64 bits.
        slots = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE).to(tl.int64)
        keys = _load_columns(key_cache_ptr, slots * KEY_STRIDE, inside, MASKED, 0, DIM, HEAD_DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION)
        if REST:
            rest = _load_columns(key_cache_ptr, slots * KEY_STRIDE, inside, MASKED, DIM, REST, HEAD_DIM)
            scores = tl.dot(query_rest, rest.T, scores, input_precision=PRECISION)
        if LATENT:
            values = keys
        else:
            values = _load_columns(value_cache_ptr, slots * VALUE_STRIDE, inside, MASKED, 0, VALUE_DIM, VALUE_HEAD_DIM)
        if MASKED:
            scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit
def _decode_group(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    seq_lens_ptr,
    partial_ptr,
    partial_lse_ptr,
    scale,
    max_blocks,
    LATENT: tl.constexpr,
    GROUP: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_HEAD_DIM: tl.constexpr,
    VALUE_STRIDE: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    # Programs that read the same keys, or neighbours of them, follow each other.
    TILES_OF_GROUP: tl.constexpr = (GROUP + HEADS - 1) // HEADS
    kv_head = tl.program_id(0) // TILES_OF_GROUP
    split = tl.program_id(1)
    seq = tl.program_id(2).to(tl.int64)
    num_splits = tl.num_programs(1)
    members = tl.program_id(0) % TILES_OF_GROUP * HEADS + tl.arange(0, HEADS)
    first_row = seq * (NUM_KV_HEADS * GROUP) + kv_head * GROUP
    stored = members < GROUP
    query_ptr += first_row * HEAD_DIM
    query = _load_columns(query_ptr, members * HEAD_DIM, stored, True, 0, DIM, HEAD_DIM)
    query_rest = query
    if REST:
        query_rest = _load_columns(query_ptr, members * HEAD_DIM, stored, True, DIM, REST, HEAD_DIM)
    key_cache_ptr += kv_head * HEAD_DIM
    value_cache_ptr += kv_head * VALUE_STRIDE
    table_row = block_table_ptr + seq * max_blocks

    length = tl.load(seq_lens_ptr + seq)
    split_length = tl.cdiv(length, num_splits)
    begin = split * split_length
    end = tl.minimum(begin + split_length, length)
    whole = begin + tl.maximum(end - begin, 0) // TILE * TILE
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, VALUE_DIM), tl.float32)
    peak, total, acc = _attend_keys(
        query, query_rest, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, begin, whole, scale,
        False, LATENT, NUM_KV_HEADS * HEAD_DIM, NUM_KV_HEADS * VALUE_STRIDE, BLOCK_SIZE, HEAD_DIM, VALUE_HEAD_DIM,
        TILE, DIM, REST, VALUE_DIM,
    )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, query_rest, key_cache_ptr, value_cache_ptr, table_row, peak, total, acc, whole, end, scale,
        True, LATENT, NUM_KV_HEADS * HEAD_DIM, NUM_KV_HEADS * VALUE_STRIDE, BLOCK_SIZE, HEAD_DIM, VALUE_HEAD_DIM,
        TILE, DIM, REST, VALUE_DIM,
    )  # fmt: skip

    # An empty split has total 0, and the logarithm of that is minus infinity.
    partial_ptr += first_row * num_splits * VALUE_HEAD_DIM
    partial_lse_ptr += first_row * num_splits
    places = members * num_splits + split
    partial = acc / tl.where(total > 0, total, 1.0)[:, None]
    columns = tl.arange(0, VALUE_DIM)
    mask = stored[:, None] & (columns < VALUE_HEAD_DIM)[None, :]
    tl.store(partial_ptr + places[:, None] * VALUE_HEAD_DIM + columns[None, :], partial, mask=mask)
    tl.store(partial_lse_ptr + places, (peak + tl.log2(total)) * LN_2, mask=stored)


def _shape(latent: bool, group: int, longest: int, item_bytes: int) -> tuple[int, int, int, int]:
    """Return heads and tokens of a tile, warps and stages, for padded rows of `longest` values.

    On NVIDIA 64 heads of 512 values take 128 registers a thread of 8 warps. Both groups of four warps compute all 64
    rows of scores, with instructions of half as many columns as a tile has tokens: below 32 columns, reading queries
    from shared memory takes longer than the product. Queries and two tiles of 64 latent tokens take 216 of 227 KiB.
    AMD has 64 KiB in all, and float32 takes three TF32 products on NVIDIA, with two numbers of each query in registers:
    there the baseline's 16 heads stay.
    """
    tile_bytes, stages = 32768, 3
    if torch.version.hip:
        tile_bytes, stages = 16384, 1 if item_bytes == 4 else 2
    tile = max(16, min(64 if item_bytes == 2 else 32, tile_bytes // (longest * item_bytes)))
    if group <= 32 or item_bytes == 4 or torch.version.hip:
        return 16, tile, 4, stages
    return 64, 64 if latent else tile, 8 if longest > 128 else 4, stages


def decode_attn_grouped_stage1(query, key_cache, value_cache, block_table, seq_lens, sm_scale, partial, partial_lse):
    num_seqs, num_heads, num_splits, value_dim = partial.shape
    _, block_size, num_kv_heads, head_dim = key_cache.shape
    group = num_heads // num_kv_heads
    dim = max(16, 1 << (head_dim.bit_length() - 1))
    rest = max(16, triton.next_power_of_2(head_dim - dim)) if head_dim > dim else 0
    value_block = max(16, triton.next_power_of_2(value_dim))
    # Values that are the first part of their keys, all of it.
    latent = value_cache.data_ptr() == key_cache.data_ptr() and value_dim == dim
    heads, tile, num_warps, stages = _shape(latent, group, max(dim, value_block), query.element_size())
    _decode_group[(num_kv_heads * triton.cdiv(group, heads), num_splits, num_seqs)](
        query,
        key_cache,
        value_cache,
        block_table,
        seq_lens,
        partial,
        partial_lse,
        sm_scale * LOG2_E,
        block_table.shape[1],
        LATENT=latent,
        GROUP=group,
        NUM_KV_HEADS=num_kv_heads,
        BLOCK_SIZE=block_size,
        HEAD_DIM=head_dim,
        VALUE_HEAD_DIM=value_dim,
        VALUE_STRIDE=value_cache.stride(2),
        HEADS=heads,
        TILE=tile,
        DIM=dim,
        REST=rest,
        VALUE_DIM=value_block,
        num_warps=num_warps,
        num_stages=stages,
    )
