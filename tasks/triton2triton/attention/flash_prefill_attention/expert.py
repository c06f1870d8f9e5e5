"""Flash attention of ragged sequences with tall tiles: 64 or 128 queries read each block of 64 keys once.

What the baseline wastes, and what is done instead:

- It finds its sequence in a serial loop over all of them. Here all offsets are read at once and counted.
- Its blocks of 32 keys need two waits for every 32 columns of scores. Blocks of 64 keys need half as many.
- Rows of more than 128 values get 32 queries a tile, too few for wgmma, and are padded to a power of two. Here they get
  128, and 192 values are 128 and 64: a quarter fewer products of queries and keys.
- Every block is masked. Here only those with the diagonal or the end of a sequence are.
- Each of its steps waits for keys that were asked for in the one before. Here two steps lie between.
- Sizes are constants, so that rows of a multiple of 8 values are read in whole vectors.

Scores are in base 2, whose exponential is one instruction. sm_scale is positive: the highest score is scaled, not each.
The tiles with the most keys start first.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = 1.4426950408889634


@triton.jit
def _load_rows(
    ptr, rows, inside, stride, MASKED: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr
):
    """Columns FIRST … FIRST + WIDTH - 1 of rows of SIZE values; those past the end are zeros."""
    columns = FIRST + tl.arange(0, WIDTH)
    pointers = ptr + rows[:, None] * stride + columns[None, :]
    if MASKED:
        return tl.load(pointers, mask=inside[:, None] & (columns < SIZE)[None, :], other=0.0)
    if FIRST + WIDTH > SIZE:
        return tl.load(pointers, mask=(columns < SIZE)[None, :], other=0.0)
    return tl.load(pointers)


@triton.jit
def _attend_keys(
    query,
    query_rest,
    key_ptr,
    value_ptr,
    peak,
    total,
    acc,
    rows,
    first,
    last,
    scale,
    key_stride,
    value_stride,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_HEAD_DIM: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    """The online softmax over keys first … last - 1, in base 2."""
    for start in range(first, last, KEYS):
        tokens = start + tl.arange(0, KEYS)
        inside = tokens < last
        keys = _load_rows(key_ptr, tokens, inside, key_stride, MASKED, 0, DIM, HEAD_DIM)
        scores = tl.dot(query, keys.T, input_precision=PRECISION)
        if REST:
            keys = _load_rows(key_ptr, tokens, inside, key_stride, MASKED, DIM, REST, HEAD_DIM)
            scores = tl.dot(query_rest, keys.T, scores, input_precision=PRECISION)
        values = _load_rows(value_ptr, tokens, inside, value_stride, MASKED, 0, VALUE_DIM, VALUE_HEAD_DIM)
        if MASKED:
            newest = tl.minimum(rows, last - 1) if CAUSAL else tl.full(rows.shape, last - 1, tl.int32)
            scores = tl.where(tokens[None, :] <= newest[:, None], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores * scale - new_peak[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit
def _attend(
    query_ptr,
    key_ptr,
    value_ptr,
    cu_seqlens_ptr,
    out_ptr,
    scale,
    query_stride,
    key_stride,
    value_stride,
    num_seqs,
    NUM_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    VALUE_HEAD_STRIDE: tl.constexpr,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_HEAD_DIM: tl.constexpr,
    SEQS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    # Sequence s owns tiles cu_seqlens[s] // ROWS + s and up, of which the last may be empty.
    head = tl.program_id(0) % NUM_HEADS
    tile = tl.num_programs(0) // NUM_HEADS - 1 - tl.program_id(0) // NUM_HEADS
    seqs = tl.arange(0, SEQS)
    owned = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0) // ROWS + seqs
    seq = tl.sum(((seqs < num_seqs) & (owned <= tile)).to(tl.int32), axis=0) - 1
    begin = tl.load(cu_seqlens_ptr + seq)
    length = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first = (tile - begin // ROWS - seq) * ROWS
    if first >= length:
        return

    kv_head = head // GROUP
    rows = first + tl.arange(0, ROWS)
    query_ptr += begin.to(tl.int64) * query_stride + head * HEAD_DIM
    key_ptr += begin.to(tl.int64) * key_stride + kv_head * HEAD_DIM
    value_ptr += begin.to(tl.int64) * value_stride + kv_head * VALUE_HEAD_STRIDE
    query = _load_rows(query_ptr, rows, rows < length, query_stride, True, 0, DIM, HEAD_DIM)
    query_rest = query
    if REST:
        query_rest = _load_rows(query_ptr, rows, rows < length, query_stride, True, DIM, REST, HEAD_DIM)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, VALUE_DIM), tl.float32)
    end = tl.minimum(first + ROWS, length) if CAUSAL else length
    # Keys that every query of the tile sees, in whole blocks.
    seen_by_all = (first if CAUSAL else length) // KEYS * KEYS
    peak, total, acc = _attend_keys(
        query, query_rest, key_ptr, value_ptr, peak, total, acc, rows, 0, seen_by_all, scale, key_stride, value_stride,
        False, CAUSAL, HEAD_DIM, VALUE_HEAD_DIM, KEYS, DIM, REST, VALUE_DIM,
    )  # fmt: skip
    peak, total, acc = _attend_keys(
        query, query_rest, key_ptr, value_ptr, peak, total, acc, rows, seen_by_all, end, scale, key_stride,
        value_stride, True, CAUSAL, HEAD_DIM, VALUE_HEAD_DIM, KEYS, DIM, REST, VALUE_DIM,
    )  # fmt: skip
    columns = tl.arange(0, VALUE_DIM)
    out_rows = ((begin + rows).to(tl.int64) * NUM_HEADS + head) * VALUE_HEAD_DIM
    inside = (rows < length)[:, None] & (columns < VALUE_HEAD_DIM)[None, :]
    result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_rows[:, None] + columns[None, :], result, mask=inside)


def _parts(head_dim: int) -> tuple[int, int]:
    """Return two powers of two that hold a row, the second 0 where one alone is no longer than both."""
    whole = max(16, triton.next_power_of_2(head_dim))
    half = whole // 2
    rest = max(16, triton.next_power_of_2(max(1, head_dim - half)))
    return (half, rest) if half >= 32 and half + rest < whole else (whole, 0)


def _shape(mean_length: int, head_dim: int, value_dim: int, item_bytes: int) -> tuple[int, int, int]:
    """Return queries and keys of a tile, and warps.

    float32 takes three TF32 products on NVIDIA, with two numbers of each query in registers and of each key in shared
    memory: tiles are half as large, of long rows a quarter. Sequences of few tokens would leave most of 128 rows empty.
    Keys and values of three 16-bit blocks, as large as they get here, take 120 KiB, and of one, as on AMD, 40 KiB.
    """
    if item_bytes == 4:
        return (64, 32, 4) if head_dim <= 128 and value_dim <= 128 else (32, 16, 8)
    if head_dim > 192 or value_dim > 128:
        # Both need more than the 64 KiB of AMD for 128 rows.
        return (64, 32, 4) if mean_length < 512 or torch.version.hip else (128, 32, 8)
    return (128, 64, 8) if mean_length >= 512 else (64, 64, 4)


def flash_prefill_attention(query, key, value, cu_seqlens, sm_scale, causal, out):
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads, value_dim = value.shape[1:]
    num_seqs = cu_seqlens.numel() - 1
    rows, keys, num_warps = _shape(num_tokens // num_seqs, head_dim, value_dim, query.element_size())
    dim, rest = _parts(head_dim)
    _attend[((num_tokens // rows + num_seqs) * num_heads,)](
        query,
        key,
        value,
        cu_seqlens,
        out,
        sm_scale * LOG2_E,
        query.stride(0),
        key.stride(0),
        value.stride(0),
        num_seqs,
        NUM_HEADS=num_heads,
        GROUP=num_heads // num_kv_heads,
        VALUE_HEAD_STRIDE=value.stride(1),
        CAUSAL=causal,
        HEAD_DIM=head_dim,
        VALUE_HEAD_DIM=value_dim,
        SEQS=triton.next_power_of_2(num_seqs),
        ROWS=rows,
        KEYS=keys,
        DIM=dim,
        REST=rest,
        VALUE_DIM=max(16, triton.next_power_of_2(value_dim)),
        num_warps=num_warps,
        # With three stages, two blocks are in flight. AMD has 64 KiB a workgroup, and float32 no registers for more.
        num_stages=2 if torch.version.hip or query.element_size() == 4 else 3,
    )
