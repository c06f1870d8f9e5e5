"""Flash attention (Dao, FlashAttention-2, 2023) of ragged sequences: wide tiles, masks on the edges only, base 2.

Programs are ordered so that the longest rows of causal attention begin first, and the query heads of one key head
run side by side, for the cache.
"""

import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def _find_tile(cu_seqlens_ptr, tile, num_seqs, ROWS: tl.constexpr, STEPS: tl.constexpr):
    """Sequence s owns tiles cu_seqlens[s] // ROWS + s and up: the last one that owns none after `tile`."""
    lower = 0
    upper = num_seqs - 1
    for _ in range(STEPS):
        middle = (lower + upper + 1) // 2
        starts = tl.load(cu_seqlens_ptr + middle) // ROWS + middle <= tile
        lower = tl.where(starts, middle, lower)
        upper = tl.where(starts, upper, middle - 1)
    begin = tl.load(cu_seqlens_ptr + lower)
    length = tl.load(cu_seqlens_ptr + lower + 1) - begin
    return begin, length, (tile - begin // ROWS - lower) * ROWS


@triton.jit
def _weigh(weights, values, acc):
    """acc + weights @ values, the weights being split in two: one number of the values' dtype is not exact enough."""
    high = weights.to(values.dtype)
    acc = tl.dot(high, values, acc, input_precision="ieee")
    if values.dtype != tl.float32:
        low = (weights - high.to(tl.float32)).to(values.dtype)
        acc = tl.dot(low, values, acc)
    return acc


@triton.jit
def _walk(
    acc,
    peak,
    total,
    query,
    key_rows,
    value_rows,
    start,
    stop,
    rows,
    length,
    key_step,
    value_step,
    head_dim,
    value_dim,
    scale,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    """The online softmax over keys from start to stop; scores are of base 2. Only `MASKED` looks at positions."""
    dims = tl.arange(0, DIM)
    value_dims = tl.arange(0, VALUE_DIM)
    for first in range(start, stop, TILE):
        tokens = first + tl.arange(0, TILE)
        inside = tokens < length
        key_mask = (dims < head_dim)[:, None]
        value_mask = (value_dims < value_dim)[None, :]
        if MASKED:
            key_mask = key_mask & inside[None, :]
            value_mask = value_mask & inside[:, None]
        places = tokens.to(tl.int64)
        keys = tl.load(key_rows + places[None, :] * key_step + dims[:, None], mask=key_mask, other=0.0)
        scores = tl.dot(query, keys, input_precision="ieee") * scale
        if MASKED:
            visible = inside[None, :]
            if CAUSAL:
                visible = visible & (tokens[None, :] <= rows[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        values = tl.load(value_rows + places[:, None] * value_step + value_dims[None, :], mask=value_mask, other=0.0)
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        acc = _weigh(weights, values, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak
    return acc, peak, total


@triton.jit
def _attend(
    query_ptr,
    key_ptr,
    value_ptr,
    cu_seqlens_ptr,
    out_ptr,
    scale,
    num_seqs,
    num_heads,
    num_kv_heads,
    head_dim,
    value_dim,
    CAUSAL: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    head = tl.program_id(0) % num_heads
    tile = tl.num_programs(0) // num_heads - 1 - tl.program_id(0) // num_heads
    kv_head = head // (num_heads // num_kv_heads)
    begin, length, first = _find_tile(cu_seqlens_ptr, tile, num_seqs, ROWS, STEPS)
    if first >= length:
        return
    rows = first + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    value_dims = tl.arange(0, VALUE_DIM)
    query_rows = (begin + rows).to(tl.int64) * num_heads + head
    mask = (rows < length)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + query_rows[:, None] * head_dim + dims[None, :], mask=mask, other=0.0)
    first_kv = begin.to(tl.int64) * num_kv_heads + kv_head
    key_rows = key_ptr + first_kv * head_dim
    value_rows = value_ptr + first_kv * value_dim
    acc = tl.zeros((ROWS, VALUE_DIM), tl.float32)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    open_end = first // TILE * TILE if CAUSAL else length // TILE * TILE
    end = tl.minimum(first + ROWS, length) if CAUSAL else length
    acc, peak, total = _walk(
        acc,
        peak,
        total,
        query,
        key_rows,
        value_rows,
        0,
        open_end,
        rows,
        length,
        num_kv_heads * head_dim,
        num_kv_heads * value_dim,
        head_dim,
        value_dim,
        scale,
        False,
        CAUSAL,
        TILE,
        DIM,
        VALUE_DIM,
    )
    acc, peak, total = _walk(
        acc,
        peak,
        total,
        query,
        key_rows,
        value_rows,
        open_end,
        end,
        rows,
        length,
        num_kv_heads * head_dim,
        num_kv_heads * value_dim,
        head_dim,
        value_dim,
        scale,
        True,
        CAUSAL,
        TILE,
        DIM,
        VALUE_DIM,
    )
    result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    out_mask = (rows < length)[:, None] & (value_dims < value_dim)[None, :]
    tl.store(out_ptr + query_rows[:, None] * value_dim + value_dims[None, :], result, mask=out_mask)


def _tiles(dim: int, item_bytes: int) -> tuple[int, int, int]:
    """Rows and keys of a tile, and warps: what registers and the smallest shared memory (64 KiB) hold."""
    if item_bytes == 4:
        return (64, 32, 4) if dim <= 64 else (32, 32 if dim <= 128 else 16, 4)
    if dim > 128:
        return 64, 32, 4
    return 128, 64, 4 if dim <= 64 else 8


def flash_prefill_attention(query, key, value, cu_seqlens, sm_scale, causal, out):
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads, value_dim = value.shape[1:]
    num_seqs = cu_seqlens.numel() - 1
    dim, wide = (max(16, triton.next_power_of_2(size)) for size in (head_dim, value_dim))
    rows, tile, warps = _tiles(max(dim, wide), query.element_size())
    # Encoders and drafts have short sequences, for which tall tiles would be idle.
    while rows > 32 and rows * num_seqs >= 2 * num_tokens:
        rows //= 2
    _attend[((num_tokens // rows + num_seqs) * num_heads,)](
        query,
        key,
        value,
        cu_seqlens,
        out,
        sm_scale * LOG2_E,
        num_seqs,
        num_heads,
        num_kv_heads,
        head_dim,
        value_dim,
        CAUSAL=causal,
        STEPS=num_seqs.bit_length(),
        ROWS=rows,
        TILE=tile,
        DIM=dim,
        VALUE_DIM=wide,
        num_warps=warps,
        # Rows that are no multiple of 16 bytes gain nothing from being loaded ahead.
        num_stages=1 if head_dim % 8 or value_dim % 8 else 2,
    )
