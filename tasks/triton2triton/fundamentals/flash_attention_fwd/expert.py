"""Flash attention with wide blocks: keys that no query of a block sees are not read, and only those at the edge masked.

Scores are in base 2, whose exponential is one instruction. Blocks with the most keys start first, so that none is left
over at the end.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = 1.4426950408889634
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def attend_keys(
    query,
    key_ptr,
    value_ptr,
    peak,
    total,
    acc,
    i,
    first,
    last,
    scale,
    seq_len,
    head_dim,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    WHOLE_HEAD: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """The online softmax over keys first … last - 1."""
    dims = tl.arange(0, DIM)
    for start in range(first, last, KEYS):
        j = start + tl.arange(0, KEYS)
        offsets = j[:, None] * head_dim + dims[None, :]
        if MASKED:
            inside = (j < seq_len)[:, None] & (dims < head_dim)[None, :]
            key = tl.load(key_ptr + offsets, mask=inside, other=0.0)
            value = tl.load(value_ptr + offsets, mask=inside, other=0.0)
        elif WHOLE_HEAD:
            key = tl.load(key_ptr + offsets)
            value = tl.load(value_ptr + offsets)
        else:
            key = tl.load(key_ptr + offsets, mask=(dims < head_dim)[None, :], other=0.0)
            value = tl.load(value_ptr + offsets, mask=(dims < head_dim)[None, :], other=0.0)
        scores = tl.dot(query, key.T, input_precision=PRECISION) * scale
        if MASKED:
            visible = (j < seq_len)[None, :]
            if CAUSAL:
                visible = visible & (j[None, :] <= i[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(value.dtype), value, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit
def attend(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    lse_ptr,
    scale,
    num_heads,
    num_kv_heads,
    seq_len,
    head_dim,
    CAUSAL: tl.constexpr,
    WHOLE_HEAD: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    all_heads = tl.num_programs(0) // tl.cdiv(seq_len, QUERIES)
    head = (tl.program_id(0) % all_heads).to(tl.int64)
    block = tl.cdiv(seq_len, QUERIES) - 1 - tl.program_id(0) // all_heads
    kv_head = head // num_heads * num_kv_heads + head % num_heads // (num_heads // num_kv_heads)
    key_ptr += kv_head * seq_len * head_dim
    value_ptr += kv_head * seq_len * head_dim
    i = block * QUERIES + tl.arange(0, QUERIES)
    dims = tl.arange(0, DIM)
    offsets = (head * seq_len + i)[:, None] * head_dim + dims[None, :]
    inside = (i < seq_len)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + offsets, mask=inside, other=0.0)
    peak = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    acc = tl.zeros((QUERIES, DIM), tl.float32)
    end = tl.minimum((block + 1) * QUERIES, seq_len) if CAUSAL else seq_len
    # Keys that every query of the block sees, in whole blocks of keys.
    seen_by_all = (block * QUERIES if CAUSAL else seq_len) // KEYS * KEYS
    peak, total, acc = attend_keys(
        query, key_ptr, value_ptr, peak, total, acc, i, 0, seen_by_all, scale, seq_len, head_dim,
        False, CAUSAL, WHOLE_HEAD, KEYS, DIM,
    )  # fmt: skip
    peak, total, acc = attend_keys(
        query, key_ptr, value_ptr, peak, total, acc, i, seen_by_all, end, scale, seq_len, head_dim,
        True, CAUSAL, WHOLE_HEAD, KEYS, DIM,
    )  # fmt: skip
    tl.store(out_ptr + offsets, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + head * seq_len + i, (peak + tl.log2(total)) * LN_2, mask=i < seq_len)


def _tile(dim: int, item_bytes: int) -> tuple[int, int, int]:
    """Queries, keys and warps of a program. Without matrix units, for float32, a wide tile only costs registers."""
    if item_bytes == 4:
        return 32, 32, 4
    return (64, 32, 4) if dim > 128 else (128, 64, 8)


def flash_attention_fwd(query, key, value, sm_scale, causal, out, lse):
    batch, num_heads, seq_len, head_dim = query.shape
    dim = max(16, triton.next_power_of_2(head_dim))
    queries, keys, num_warps = _tile(dim, query.element_size())
    queries = min(queries, max(16, triton.next_power_of_2(seq_len)))
    attend[(triton.cdiv(seq_len, queries) * num_heads * batch,)](
        query,
        key,
        value,
        out,
        lse,
        sm_scale * LOG2_E,
        num_heads,
        key.shape[1],
        seq_len,
        head_dim,
        CAUSAL=causal,
        WHOLE_HEAD=dim == head_dim,
        QUERIES=queries,
        KEYS=keys,
        DIM=dim,
        num_warps=num_warps if queries == 128 else 4,
        num_stages=2,
    )
