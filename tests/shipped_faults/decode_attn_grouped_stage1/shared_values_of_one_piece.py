"""expect: wrong_result in heldout-42. Aliasing: values that are a view of the keys end at the first piece of a power of two."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_group(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    seq_lens_ptr,
    partial_ptr,
    partial_lse_ptr,
    sm_scale,
    num_heads,
    num_kv_heads,
    head_dim,
    value_dim,
    value_valid,
    value_stride,
    block_size,
    max_blocks,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    split = tl.program_id(2)
    num_splits = tl.num_programs(2)
    group = num_heads // num_kv_heads
    tiles_of_group = tl.cdiv(group, HEADS)
    kv_head = tl.program_id(1) // tiles_of_group
    members = tl.program_id(1) % tiles_of_group * HEADS + tl.arange(0, HEADS)
    member_mask = (members < group)[:, None]
    rows = seq * num_heads + kv_head * group + members
    dims = tl.arange(0, DIM)
    value_dims = tl.arange(0, VALUE_DIM)
    query_mask = member_mask & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + rows[:, None] * head_dim + dims[None, :], mask=query_mask, other=0.0)
    if REST > 0:
        rest_dims = DIM + tl.arange(0, REST)
        rest_mask = member_mask & (rest_dims < head_dim)[None, :]
        query_rest = tl.load(query_ptr + rows[:, None] * head_dim + rest_dims[None, :], mask=rest_mask, other=0.0)

    length = tl.load(seq_lens_ptr + seq)
    split_length = tl.cdiv(length, num_splits)
    begin = split * split_length
    end = tl.minimum(begin + split_length, length)
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, VALUE_DIM), tl.float32)
    for start in range(begin, end, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < end
        blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        kv_rows = slots * num_kv_heads + kv_head
        key_mask = inside[None, :] & (dims < head_dim)[:, None]
        keys = tl.load(key_cache_ptr + kv_rows[None, :] * head_dim + dims[:, None], mask=key_mask, other=0.0)
        scores = tl.dot(query, keys, input_precision="ieee")
        if REST > 0:
            key_mask = inside[None, :] & (rest_dims < head_dim)[:, None]
            keys = tl.load(key_cache_ptr + kv_rows[None, :] * head_dim + rest_dims[:, None], mask=key_mask, other=0.0)
            scores += tl.dot(query_rest, keys, input_precision="ieee")
        value_mask = inside[:, None] & (value_dims < value_valid)[None, :]
        value_places = kv_rows[:, None] * value_stride + value_dims[None, :]
        values = tl.load(value_cache_ptr + value_places, mask=value_mask, other=0.0)
        scores = tl.where(inside[None, :], scores * sm_scale, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    # An empty split has total 0, and the logarithm of that is minus infinity.
    places = rows * num_splits + split
    partial = acc / tl.where(total > 0, total, 1.0)[:, None]
    out_mask = member_mask & (value_dims < value_dim)[None, :]
    tl.store(partial_ptr + places[:, None] * value_dim + value_dims[None, :], partial, mask=out_mask)
    tl.store(partial_lse_ptr + places, peak + tl.log(total), mask=members < group)


def decode_attn_grouped_stage1(query, key_cache, value_cache, block_table, seq_lens, sm_scale, partial, partial_lse):
    num_seqs, num_heads, num_splits, value_dim = partial.shape
    _, block_size, num_kv_heads, head_dim = key_cache.shape
    programs = num_kv_heads * triton.cdiv(num_heads // num_kv_heads, 16)
    dim = max(16, 1 << (head_dim.bit_length() - 1))
    rest = max(16, triton.next_power_of_2(head_dim - dim)) if head_dim > dim else 0
    value_block = max(16, triton.next_power_of_2(value_dim))
    # A tile of keys and one of values, in memory that AMD's workgroups have 64 KiB of and NVIDIA's blocks 227. There is
    # no room beside them for the next tiles of float32 there.
    tile_bytes, stages = 32768, 3
    if torch.version.hip:
        tile_bytes, stages = 16384, 1 if query.element_size() == 4 else 2
    tile = max(16, min(64, tile_bytes // (max(dim, value_block) * query.element_size())))
    decode_group[(num_seqs, programs, num_splits)](
        query,
        key_cache,
        value_cache,
        block_table,
        seq_lens,
        partial,
        partial_lse,
        sm_scale,
        num_heads,
        num_kv_heads,
        head_dim,
        value_dim,
        # Latent values are the first piece of the key: the rotary rest is no part of them.
        min(value_dim, dim) if value_cache.data_ptr() == key_cache.data_ptr() else value_dim,
        value_cache.stride(2),
        block_size,
        block_table.shape[1],
        HEADS=16,
        TILE=tile,
        DIM=dim,
        REST=rest,
        VALUE_DIM=value_block,
        num_stages=stages,
    )
