"""expect: wrong_result or launch_error. Past the end of a sequence: the last split is as long as the others and reads keys of the next sequence."""

import triton
import triton.language as tl


@triton.jit
def decode_split(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    kv_indices_ptr,
    cu_seqlens_ptr,
    partial_ptr,
    partial_lse_ptr,
    sm_scale,
    softcap,
    slot_stride,
    head_dim,
    CAPPED: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    split = tl.program_id(2)
    num_heads = tl.num_programs(1)
    num_splits = tl.num_programs(2)
    first_key = tl.load(cu_seqlens_ptr + seq)
    length = tl.load(cu_seqlens_ptr + seq + 1) - first_key
    split_length = tl.cdiv(length, num_splits)
    begin = split * split_length
    end = tl.where(begin < length, begin + split_length, begin)

    dims = tl.arange(0, DIM)
    inside_dims = dims < head_dim
    row = seq * num_heads + head
    query = tl.load(query_ptr + row * head_dim + dims, mask=inside_dims, other=0.0).to(tl.float32)
    peak = -float("inf")
    total = 0.0
    acc = tl.zeros((DIM,), tl.float32)
    for start in range(begin, end, TILE):
        keys_of_tile = start + tl.arange(0, TILE)
        inside = keys_of_tile < end
        slots = tl.load(kv_indices_ptr + first_key + keys_of_tile, mask=inside, other=0).to(tl.int64)
        offsets = (slots * slot_stride + head * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & inside_dims[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(query[None, :] * keys, axis=1) * sm_scale
        if CAPPED:
            # tanh(x) = 1 - 2 / (exp(2 x) + 1)
            scores = softcap * (1.0 - 2.0 / (tl.exp(2.0 * scores / softcap) + 1.0))
        scores = tl.where(inside, scores, -float("inf"))
        new_peak = tl.maximum(tl.max(scores, axis=0), peak)
        shrink = tl.exp(peak - new_peak)
        weights = tl.exp(scores - new_peak)
        total = total * shrink + tl.sum(weights, axis=0)
        acc = acc * shrink + tl.sum(weights[:, None] * values, axis=0)
        peak = new_peak

    # An empty split has total 0, and the logarithm of that is minus infinity.
    place = row * num_splits + split
    partial = acc / tl.where(total > 0, total, 1.0)
    tl.store(partial_ptr + place * head_dim + dims, partial, mask=inside_dims)
    tl.store(partial_lse_ptr + place, tl.log(total) + peak)


def decode_attn_stage1(query, key_cache, value_cache, kv_indices, cu_seqlens, sm_scale, softcap, partial, partial_lse):
    num_seqs, num_heads, num_splits, head_dim = partial.shape
    decode_split[(num_seqs, num_heads, num_splits)](
        query,
        key_cache,
        value_cache,
        kv_indices,
        cu_seqlens,
        partial,
        partial_lse,
        sm_scale,
        softcap,
        key_cache.stride(0),
        head_dim,
        CAPPED=softcap > 0,
        TILE=32,
        DIM=triton.next_power_of_2(head_dim),
    )
