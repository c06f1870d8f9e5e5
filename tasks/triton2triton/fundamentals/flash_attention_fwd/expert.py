"""Flash attention with wide blocks: keys that no query of a block sees are not read, and only those at the edge masked.

Scores are in base 2, whose exponential is one instruction. Blocks with the most keys start first, so that none is left
over at the end.

On NVIDIA three short products serve as one of float32. The compiler would split operands for them at every step, in
registers. Here a first launch splits keys into upper and lower float16, 22 bits together, and values into upper and
lower bfloat16, and fills up their rows and blocks with zeros. The loop copies them to shared memory and multiplies.
A factor for every block of keys, and one for the queries of a program, keeps numbers within the range of float16.
With bfloat16 scores would have 16 bits, which is too few for an exponential. Weights are split in registers.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = 1.4426950408889634
LN_2 = tl.constexpr(0.6931471805599453)
SPLIT_FROM = 64  # tokens, so that zeros behind the last key do not double what is copied


@triton.jit
def weigh(scores, peak, i, j, scale, seq_len, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """Return the exponentials of scores below the new peaks of their rows, these, and what old sums shrink by."""
    if MASKED:
        visible = (j < seq_len)[None, :]
        if CAUSAL:
            visible = visible & (j[None, :] <= i[:, None])
        scores = tl.where(visible, scores * scale, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
    else:
        # scale > 0. Scaling and subtraction are one instruction.
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_peak[:, None])
    return weights, new_peak, tl.exp2(peak - new_peak)


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
        scores = tl.dot(query, key.T, input_precision=PRECISION)
        weights, new_peak, shrink = weigh(scores, peak, i, j, scale, seq_len, MASKED, CAUSAL)
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
    head_dim = head_dim // 8 * 8  # the compiler now knows that rows are whole vectors
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
    seen_by_all = tl.where(scale > 0, seen_by_all, 0)
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


@triton.jit
def factors(x):
    """Return the power of two that brings the largest of x to 2^14 … 2^15, and its inverse."""
    exponent = tl.max(tl.max(tl.abs(x), axis=1), axis=0).to(tl.int32, bitcast=True) >> 23
    up = tl.minimum(268 - exponent, 253)
    return (up << 23).to(tl.float32, bitcast=True), ((254 - up) << 23).to(tl.float32, bitcast=True)


@triton.jit
def halves(x, dtype: tl.constexpr):
    upper = x.to(dtype)
    return upper, (x - upper.to(tl.float32)).to(dtype)


@triton.jit
def split(
    key_ptr,
    value_ptr,
    split_key_ptr,
    split_value_ptr,
    factors_ptr,
    seq_len,
    head_dim,
    padded_len,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Write one block of keys and values as (heads, 2, padded_len, DIM), and by what scores of the block grew."""
    head_dim = head_dim // 8 * 8  # the compiler now knows that rows are whole vectors
    blocks = padded_len // KEYS
    head = (tl.program_id(0) // blocks).to(tl.int64)
    j = tl.program_id(0) % blocks * KEYS + tl.arange(0, KEYS)
    dims = tl.arange(0, DIM)
    offsets = (head * seq_len + j)[:, None] * head_dim + dims[None, :]
    inside = (j < seq_len)[:, None] & (dims < head_dim)[None, :]
    key = tl.load(key_ptr + offsets, mask=inside, other=0.0)
    value = tl.load(value_ptr + offsets, mask=inside, other=0.0)
    up, down = factors(key)
    tl.store(factors_ptr + tl.program_id(0), down)
    key_upper, key_lower = halves(key * up, tl.float16)
    value_upper, value_lower = halves(value, tl.bfloat16)
    offsets = (head * 2 * padded_len + j)[:, None] * DIM + dims[None, :]
    tl.store(split_key_ptr + offsets, key_upper)
    tl.store(split_key_ptr + offsets + padded_len * DIM, key_lower)
    tl.store(split_value_ptr + offsets, value_upper)
    tl.store(split_value_ptr + offsets + padded_len * DIM, value_lower)


@triton.jit
def attend_split_keys(
    upper,
    lower,
    key_ptr,
    value_ptr,
    factors_ptr,
    peak,
    total,
    acc,
    i,
    first,
    last,
    scale,
    seq_len,
    padded_len,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """The online softmax over keys first … last - 1, three products for one."""
    for start in range(first, last, KEYS):
        j = start + tl.arange(0, KEYS)
        offsets = j[:, None] * DIM + tl.arange(0, DIM)[None, :]
        key_upper = tl.load(key_ptr + offsets)
        key_lower = tl.load(key_ptr + padded_len * DIM + offsets)
        value_upper = tl.load(value_ptr + offsets)
        value_lower = tl.load(value_ptr + padded_len * DIM + offsets)
        scores = tl.dot(upper, key_lower.T, tl.dot(lower, key_upper.T))
        scores = tl.dot(upper, key_upper.T, scores)
        grown = tl.load(factors_ptr + start // KEYS) * scale
        weights, new_peak, shrink = weigh(scores, peak, i, j, grown, seq_len, MASKED, CAUSAL)
        total = total * shrink + tl.sum(weights, axis=1)
        # Rounded as integers: a conversion takes as long as an exponential.
        bits = weights.to(tl.int32, bitcast=True) + 0x8000
        weights_upper = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
        weights_lower = (weights - (bits & -0x10000).to(tl.float32, bitcast=True)).to(tl.bfloat16)
        acc = tl.dot(weights_lower, value_upper, acc * shrink[:, None])
        acc = tl.dot(weights_upper, value_lower, acc)
        acc = tl.dot(weights_upper, value_upper, acc)
        peak = new_peak
    return peak, total, acc


@triton.jit
def attend_split(
    query_ptr,
    key_ptr,
    value_ptr,
    factors_ptr,
    out_ptr,
    lse_ptr,
    scale,
    num_heads,
    num_kv_heads,
    seq_len,
    head_dim,
    padded_len,
    CAUSAL: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    head_dim = head_dim // 8 * 8  # the compiler now knows that rows are whole vectors
    all_heads = tl.num_programs(0) // tl.cdiv(seq_len, QUERIES)
    head = (tl.program_id(0) % all_heads).to(tl.int64)
    block = tl.cdiv(seq_len, QUERIES) - 1 - tl.program_id(0) // all_heads
    kv_head = head // num_heads * num_kv_heads + head % num_heads // (num_heads // num_kv_heads)
    key_ptr += kv_head * 2 * padded_len * DIM
    value_ptr += kv_head * 2 * padded_len * DIM
    factors_ptr += kv_head * (padded_len // KEYS)
    i = block * QUERIES + tl.arange(0, QUERIES)
    dims = tl.arange(0, DIM)
    offsets = (head * seq_len + i)[:, None] * head_dim + dims[None, :]
    inside = (i < seq_len)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + offsets, mask=inside, other=0.0)
    up, down = factors(query)
    upper, lower = halves(query * up, tl.float16)
    scale *= down
    peak = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    acc = tl.zeros((QUERIES, DIM), tl.float32)
    end = tl.minimum((block + 1) * QUERIES, seq_len) if CAUSAL else seq_len
    # Keys that every query of the block sees, in whole blocks of keys.
    seen_by_all = (block * QUERIES if CAUSAL else seq_len) // KEYS * KEYS
    seen_by_all = tl.where(scale > 0, seen_by_all, 0)
    peak, total, acc = attend_split_keys(
        upper, lower, key_ptr, value_ptr, factors_ptr, peak, total, acc, i, 0, seen_by_all, scale, seq_len,
        padded_len, False, CAUSAL, KEYS, DIM,
    )  # fmt: skip
    peak, total, acc = attend_split_keys(
        upper, lower, key_ptr, value_ptr, factors_ptr, peak, total, acc, i, seen_by_all, end, scale, seq_len,
        padded_len, True, CAUSAL, KEYS, DIM,
    )  # fmt: skip
    tl.store(out_ptr + offsets, acc / total[:, None], mask=inside)
    tl.store(lse_ptr + head * seq_len + i, (peak + tl.log2(total)) * LN_2, mask=i < seq_len)


def _attend_split(query, key, value, scale, causal, out, lse):
    batch, num_heads, seq_len, head_dim = query.shape
    num_kv_heads = key.shape[1]
    dim = max(16, triton.next_power_of_2(head_dim))
    queries, keys, num_warps = (128, 64, 8) if dim <= 64 else (64, 32, 4)
    blocks = triton.cdiv(seq_len, keys)
    shape = (batch * num_kv_heads, 2, blocks * keys, dim)
    split_key = torch.empty(shape, dtype=torch.float16, device=key.device)
    split_value = torch.empty(shape, dtype=torch.bfloat16, device=key.device)
    key_factors = torch.empty((batch * num_kv_heads, blocks), dtype=torch.float32, device=key.device)
    split[(blocks * num_kv_heads * batch,)](
        key, value, split_key, split_value, key_factors, seq_len, head_dim, blocks * keys, KEYS=keys, DIM=dim
    )
    attend_split[(triton.cdiv(seq_len, queries) * num_heads * batch,)](
        query,
        split_key,
        split_value,
        key_factors,
        out,
        lse,
        scale,
        num_heads,
        num_kv_heads,
        seq_len,
        head_dim,
        blocks * keys,
        CAUSAL=causal,
        QUERIES=queries,
        KEYS=keys,
        DIM=dim,
        num_warps=num_warps,
        num_stages=2,
        maxnreg=128 if num_warps == 8 else None,  # so that two programs fit on a multiprocessor
    )


def _tile(dim, seq_len, heads, dtype):
    """Return the queries and keys of a program, warps and stages."""
    longest = max(16, triton.next_power_of_2(seq_len))
    if dtype == torch.float32:
        # Without matrix units a wide tile only costs registers.
        queries, keys, warps, stages = 32, 32, 4, 2
    elif torch.version.hip:
        queries, keys, warps, stages = (64, 32, 4, 2) if dim > 128 else (128, 64, 8, 2)
    elif dim > 128:
        queries, keys, warps, stages = 128, 64, 8, 2
    else:
        # 224 KiB of an H200's shared memory: one block is multiplied while the next two are on their way.
        queries, keys, warps, stages = 128, 128, 8, 3
        if triton.cdiv(seq_len, queries) * heads <= 132:
            queries = 64  # for all multiprocessors
    queries = min(queries, longest)
    return queries, min(keys, longest), warps if queries == 128 else 4, stages


def flash_attention_fwd(query, key, value, sm_scale, causal, out, lse):
    batch, num_heads, seq_len, head_dim = query.shape
    if query.dtype == torch.float32 and seq_len >= SPLIT_FROM and not torch.version.hip:
        _attend_split(query, key, value, sm_scale * LOG2_E, causal, out, lse)
        return
    dim = max(16, triton.next_power_of_2(head_dim))
    queries, keys, num_warps, num_stages = _tile(dim, seq_len, num_heads * batch, query.dtype)
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
        num_warps=num_warps,
        num_stages=num_stages,
    )
