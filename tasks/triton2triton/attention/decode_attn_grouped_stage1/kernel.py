"""First stage of grouped split decode attention: one program per sequence, split and up to 16 heads of a group."""

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
    value_stride,
    block_size,
    max_blocks,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    split = tl.program_id(2)
    num_splits = tl.num_programs(2)
    group = num_heads // num_kv_heads
    tiles_of_group = tl.cdiv(group, HEADS)
    kv_head = tl.program_id(1) // tiles_of_group
    members = tl.program_id(1) % tiles_of_group * HEADS + tl.arange(0, HEADS)
    rows = seq * num_heads + kv_head * group + members
    value_dims = tl.arange(0, VALUE_DIM)

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
        # Latent heads are long, so their product is summed over pieces.
        scores = tl.zeros((HEADS, TILE), tl.float32)
        for first_dim in range(0, head_dim, DIM):
            dims = first_dim + tl.arange(0, DIM)
            query_mask = (members < group)[:, None] & (dims < head_dim)[None, :]
            key_mask = inside[None, :] & (dims < head_dim)[:, None]
            query = tl.load(query_ptr + rows[:, None] * head_dim + dims[None, :], mask=query_mask, other=0.0)
            keys = tl.load(key_cache_ptr + kv_rows[None, :] * head_dim + dims[:, None], mask=key_mask, other=0.0)
            scores += tl.dot(query, keys, input_precision="ieee")
        scores = tl.where(inside[None, :], scores * sm_scale, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        value_mask = inside[:, None] & (value_dims < value_dim)[None, :]
        value_places = kv_rows[:, None] * value_stride + value_dims[None, :]
        values = tl.load(value_cache_ptr + value_places, mask=value_mask, other=0.0).to(tl.float32)
        acc = acc * shrink[:, None] + tl.dot(weights, values, input_precision="ieee")
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    # An empty split has total 0, and the logarithm of that is minus infinity.
    places = rows * num_splits + split
    partial = acc / tl.where(total > 0, total, 1.0)[:, None]
    out_mask = (members < group)[:, None] & (value_dims < value_dim)[None, :]
    tl.store(partial_ptr + places[:, None] * value_dim + value_dims[None, :], partial, mask=out_mask)
    tl.store(partial_lse_ptr + places, peak + tl.log(total), mask=members < group)


def decode_attn_grouped_stage1(query, key_cache, value_cache, block_table, seq_lens, sm_scale, partial, partial_lse):
    num_seqs, num_heads, num_splits, value_dim = partial.shape
    _, block_size, num_kv_heads, head_dim = key_cache.shape
    programs = num_kv_heads * triton.cdiv(num_heads // num_kv_heads, 16)
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
        value_cache.stride(2),
        block_size,
        block_table.shape[1],
        HEADS=16,
        TILE=16,
        DIM=64,
        VALUE_DIM=max(16, triton.next_power_of_2(value_dim)),
    )
