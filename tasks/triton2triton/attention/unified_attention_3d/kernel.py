"""Segments of paged attention: one program per new token, query head and segment, on vectors instead of tiles."""

import triton
import triton.language as tl


@triton.jit
def find_sequence(cu_seqlens_ptr, token, num_seqs, STEPS: tl.constexpr):
    """The sequence that a token of the flat batch belongs to: the first one that ends after it."""
    lower = 0
    upper = num_seqs
    for _ in range(STEPS):
        middle = (lower + upper) // 2
        ended = tl.load(cu_seqlens_ptr + middle + 1) <= token
        lower = tl.where(ended, middle + 1, lower)
        upper = tl.where(ended, upper, middle)
    return lower


@triton.jit
def attend_segment(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    segment_acc_ptr,
    segment_max_ptr,
    segment_sum_ptr,
    sm_scale,
    softcap,
    window,
    num_seqs,
    num_kv_heads,
    head_dim,
    block_size,
    max_blocks,
    CAPPED: tl.constexpr,
    STEPS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    token = tl.program_id(0)
    head = tl.program_id(1)
    segment = tl.program_id(2)
    num_heads = tl.num_programs(1)
    num_segments = tl.num_programs(2)
    kv_head = head // (num_heads // num_kv_heads)
    seq = find_sequence(cu_seqlens_ptr, token, num_seqs, STEPS)
    length = tl.load(seq_lens_ptr + seq)
    # The last token of the sequence is at position length - 1.
    position = length - tl.load(cu_seqlens_ptr + seq + 1) + token
    blocks_of_segment = tl.cdiv(length, block_size * num_segments)
    lower = segment * blocks_of_segment * block_size
    upper = tl.minimum(lower + blocks_of_segment * block_size, position + 1)
    lower = tl.maximum(lower, position + 1 - window)

    dims = tl.arange(0, DIM)
    inside_dims = dims < head_dim
    row = token.to(tl.int64) * num_heads + head
    query = tl.load(query_ptr + row * head_dim + dims, mask=inside_dims, other=0.0).to(tl.float32)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    peak = -float("inf")
    total = 0.0
    acc = tl.zeros((DIM,), tl.float32)
    for start in range(lower, upper, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < upper
        blocks = tl.load(table_row + tokens // block_size, mask=inside, other=0).to(tl.int64)
        slots = blocks * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & inside_dims[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(keys * query[None, :], axis=1) * sm_scale
        if CAPPED:
            # tanh by the logistic function
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)
        scores = tl.where(inside, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_peak)
        shrink = tl.exp(peak - new_peak)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(values * weights[:, None], axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        peak = new_peak

    place = row * num_segments + segment
    tl.store(segment_acc_ptr + place * head_dim + dims, acc, mask=inside_dims)
    tl.store(segment_max_ptr + place, peak)
    tl.store(segment_sum_ptr + place, total)


def unified_attention_3d(
    query,
    key_cache,
    value_cache,
    block_table,
    cu_seqlens,
    seq_lens,
    sm_scale,
    softcap,
    sliding_window,
    segment_acc,
    segment_max,
    segment_sum,
):
    num_tokens, num_heads, num_segments, head_dim = segment_acc.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    attend_segment[(num_tokens, num_heads, num_segments)](
        query,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        seq_lens,
        segment_acc,
        segment_max,
        segment_sum,
        sm_scale,
        softcap,
        sliding_window or max_blocks * block_size,
        num_seqs,
        num_kv_heads,
        head_dim,
        block_size,
        max_blocks,
        CAPPED=softcap > 0,
        STEPS=num_seqs.bit_length(),
        TILE=16,
        DIM=triton.next_power_of_2(head_dim),
    )
