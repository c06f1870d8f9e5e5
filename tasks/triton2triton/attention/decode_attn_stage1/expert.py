"""First stage of split decode attention with deep loads: keys and values of two tiles are in flight together.

Products run on matrix units, with the query's row repeated. Weights stay exact there as the sum of two numbers of a
16-bit cache's dtype, so that the results are those of float32, which takes three TF32 products on NVIDIA itself.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = 1.4426950408889634
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _weigh(weights, values, HALVES: tl.constexpr):
    """weights @ values to float32 accuracy. weights: float32, (16, keys)."""
    if HALVES:
        high = weights.to(values.dtype)
        low = (weights - high.to(tl.float32)).to(values.dtype)
        weighed = tl.dot(low, values, tl.dot(high, values))
    else:
        weighed = tl.dot(weights, values, input_precision=PRECISION)
    return weighed


@triton.jit
def _decode_split(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    kv_indices_ptr,
    cu_seqlens_ptr,
    partial_ptr,
    partial_lse_ptr,
    scale,
    softcap,
    slot_stride,
    HEAD_DIM: tl.constexpr,
    CAPPED: tl.constexpr,
    HALVES: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    # Heads are neighbours in the cache, so programs of one split and neighbouring heads run side by side.
    head = tl.program_id(0)
    split = tl.program_id(1)
    seq = tl.program_id(2).to(tl.int64)
    num_heads = tl.num_programs(0)
    num_splits = tl.num_programs(1)
    first_key = tl.load(cu_seqlens_ptr + seq)
    length = tl.load(cu_seqlens_ptr + seq + 1) - first_key
    split_length = tl.cdiv(length, num_splits)
    begin = split * split_length
    end = tl.minimum(begin + split_length, length)

    dims = tl.arange(0, DIM)
    copies = tl.arange(0, 16)
    inside_dims = (dims < HEAD_DIM)[None, :]
    row = seq * num_heads + head
    query = tl.load(query_ptr + row * HEAD_DIM + dims[None, :] + copies[:, None] * 0, mask=inside_dims, other=0.0)
    peak = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, DIM), tl.float32)
    for start in range(begin, end, TILE):
        tokens = start + tl.arange(0, TILE)
        # Past the end, the last key is read again.
        slots = tl.load(kv_indices_ptr + first_key + tl.minimum(tokens, end - 1)).to(tl.int64)
        offsets = (slots * slot_stride + head * HEAD_DIM)[:, None] + dims[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=inside_dims, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=inside_dims, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION) * scale
        if CAPPED:
            scores = softcap * (1.0 - 2.0 * tl.sigmoid(-2.0 * scores / softcap))
        scores = tl.where((tokens < end)[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        acc = acc * shrink[:, None] + _weigh(weights, values, HALVES)
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    # All copies are alike; the first is stored. An empty split has sum 0 and a log-sum-exp of minus infinity.
    partial = acc / tl.where(total > 0, total, 1.0)[:, None]
    place = row * num_splits + split
    first = (copies == 0)[:, None]
    places = place * HEAD_DIM + dims[None, :] + copies[:, None] * 0
    tl.store(partial_ptr + places, partial, mask=first & inside_dims)
    tl.store(partial_lse_ptr + place + copies * 0, (peak + tl.log2(total)) * LN_2, mask=copies == 0)


def decode_attn_stage1(query, key_cache, value_cache, kv_indices, cu_seqlens, sm_scale, softcap, partial, partial_lse):
    num_seqs, num_heads, num_splits, head_dim = partial.shape
    dim = max(16, triton.next_power_of_2(head_dim))
    tile = max(16, min(64, 16384 // (dim * query.element_size())))
    _decode_split[(num_heads, num_splits, num_seqs)](
        query,
        key_cache,
        value_cache,
        kv_indices,
        cu_seqlens,
        partial,
        partial_lse,
        sm_scale * LOG2_E,
        softcap * LOG2_E,
        key_cache.stride(0),
        HEAD_DIM=head_dim,
        CAPPED=softcap > 0,
        HALVES=query.element_size() == 2,
        TILE=tile,
        DIM=dim,
        num_warps=4,
        # Of five stages, the rows' indices take two: keys and values of two tiles are in flight. AMD has 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 5,
    )
