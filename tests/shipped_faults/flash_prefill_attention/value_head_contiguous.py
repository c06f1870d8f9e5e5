"""expect: wrong_result in heldout-22. Stride assumed: heads of a value lie behind one another, also inside a longer key."""

import triton
import triton.language as tl


@triton.jit
def attend_queries(
    query_ptr,
    key_ptr,
    value_ptr,
    cu_seqlens_ptr,
    out_ptr,
    sm_scale,
    query_stride,
    key_stride,
    value_stride,
    value_head_stride,
    num_seqs,
    num_kv_heads,
    head_dim,
    value_dim,
    CAUSAL: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    # Tiles are counted sequence by sequence until this program's is reached.
    begin = 0
    length = 0
    first = 0
    tiles = 0
    for seq in range(num_seqs):
        lower = tl.load(cu_seqlens_ptr + seq)
        upper = tl.load(cu_seqlens_ptr + seq + 1)
        if tiles <= tl.program_id(0):
            begin = lower
            length = upper - lower
            first = (tl.program_id(0) - tiles) * ROWS
        tiles += tl.cdiv(upper - lower, ROWS)
    if first >= length:
        return

    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    kv_head = head // (num_heads // num_kv_heads)
    rows = first + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    value_dims = tl.arange(0, VALUE_DIM)
    heads = (begin + rows).to(tl.int64) * num_heads + head
    query_mask = (rows < length)[:, None] & (dims < head_dim)[None, :]
    query_rows = (begin + rows).to(tl.int64) * query_stride + head * head_dim
    query = tl.load(query_ptr + query_rows[:, None] + dims[None, :], mask=query_mask, other=0.0)

    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, VALUE_DIM), tl.float32)
    end = tl.minimum(first + ROWS, length) if CAUSAL else length
    for start in range(0, end, TILE):
        tokens = start + tl.arange(0, TILE)
        places = (begin + tokens).to(tl.int64)
        key_rows = places * key_stride + kv_head * head_dim
        value_rows = places * value_stride + kv_head * value_head_stride
        key_mask = (tokens < end)[None, :] & (dims < head_dim)[:, None]
        keys = tl.load(key_ptr + key_rows[None, :] + dims[:, None], mask=key_mask, other=0.0)
        scores = tl.dot(query, keys, input_precision="ieee") * sm_scale
        visible = tokens[None, :] < end
        if CAUSAL:
            visible = tokens[None, :] <= rows[:, None]
        scores = tl.where(visible, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        value_mask = (tokens < end)[:, None] & (value_dims < value_dim)[None, :]
        values = tl.load(value_ptr + value_rows[:, None] + value_dims[None, :], mask=value_mask, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        total = total * shrink + tl.sum(weights, axis=1)
        peak = new_peak

    out_mask = (rows < length)[:, None] & (value_dims < value_dim)[None, :]
    result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + heads[:, None] * value_dim + value_dims[None, :], result, mask=out_mask)


def flash_prefill_attention(query, key, value, cu_seqlens, sm_scale, causal, out):
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads, value_dim = value.shape[1:]
    num_seqs = cu_seqlens.numel() - 1
    dim, wide = (max(16, triton.next_power_of_2(size)) for size in (head_dim, value_dim))
    # Long rows of float32 would not fit into the shared memory of every GPU.
    tile = 16 if query.element_size() == 4 else 32
    rows = 64 if dim <= (64 if query.element_size() == 4 else 256) else 32
    # Lengths are on the device: each sequence may need one tile more than its share.
    most_tiles = num_tokens // rows + num_seqs
    attend_queries[(most_tiles, num_heads)](
        query,
        key,
        value,
        cu_seqlens,
        out,
        sm_scale,
        query.stride(0),
        key.stride(0),
        value.stride(0),
        value_dim,
        num_seqs,
        num_kv_heads,
        head_dim,
        value_dim,
        CAUSAL=causal,
        ROWS=rows,
        TILE=tile,
        DIM=dim,
        VALUE_DIM=wide,
        num_warps=4 * triton.cdiv(dim, 128),
    )
