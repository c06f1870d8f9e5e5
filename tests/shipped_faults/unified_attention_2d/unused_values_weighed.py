"""expect: wrong_result. Memory past the end: what no token owns is weighed with 0, and NaN remains NaN."""

import triton
import triton.language as tl

# Finite, so that a row which has seen no key yet does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def attend_tile(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    seq_lens_ptr,
    out_ptr,
    sm_scale,
    softcap,
    window,
    query_stride,
    num_seqs,
    num_kv_heads,
    head_dim,
    block_size,
    max_blocks,
    CAPPED: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    # Sequence s owns tiles cu_seqlens[s] // ROWS + s and up: at least as many as it needs.
    seq = 0
    for other in range(1, num_seqs):
        seq += (tl.load(cu_seqlens_ptr + other) // ROWS + other <= tl.program_id(0)).to(tl.int32)
    begin = tl.load(cu_seqlens_ptr + seq)
    query_len = tl.load(cu_seqlens_ptr + seq + 1) - begin
    first_row = (tl.program_id(0) - begin // ROWS - seq) * ROWS
    if first_row >= query_len:
        return

    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    kv_head = head // (num_heads // num_kv_heads)
    rows = first_row + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    inside_dims = (dims < head_dim)[None, :]
    row_mask = (rows < query_len)[:, None] & inside_dims
    query_rows = ((begin + rows).to(tl.int64) * num_heads + head) * head_dim
    strided_rows = (begin + rows).to(tl.int64) * query_stride + head * head_dim
    query = tl.load(query_ptr + strided_rows[:, None] + dims[None, :], mask=row_mask, other=0.0)

    context = tl.load(seq_lens_ptr + seq) - query_len
    positions = context + rows
    lower = tl.maximum(context + first_row - window, 0) // TILE * TILE
    upper = context + tl.minimum(first_row + ROWS, query_len)
    table_row = block_table_ptr + seq.to(tl.int64) * max_blocks
    peak = tl.full((ROWS,), LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(lower, upper, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < upper
        blocks = tl.load(table_row + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & inside_dims
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0)
        values = tl.load(value_cache_ptr + offsets, mask=inside_dims, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * sm_scale
        if CAPPED:
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)
        behind = positions[:, None] - tokens[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        peak = new_peak

    # Rows past the end have seen nothing; they are not stored.
    result = acc / total[:, None]
    tl.store(out_ptr + query_rows[:, None] + dims[None, :], result.to(out_ptr.dtype.element_ty), mask=row_mask)


def unified_attention_2d(
    query, key_cache, value_cache, block_table, cu_seqlens, seq_lens, sm_scale, softcap, sliding_window, out
):
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    num_seqs, max_blocks = block_table.shape
    rows = 32
    dim = max(16, triton.next_power_of_2(head_dim))
    # Long rows of float32 would not fit into the shared memory of every GPU.
    tile = 16 if query.element_size() == 4 else 32
    window = sliding_window or max_blocks * block_size
    attend_tile[(num_tokens // rows + num_seqs, num_heads)](
        query,
        key_cache,
        value_cache,
        block_table,
        cu_seqlens,
        seq_lens,
        out,
        sm_scale,
        softcap,
        window,
        query.stride(0),
        num_seqs,
        num_kv_heads,
        head_dim,
        block_size,
        max_blocks,
        CAPPED=softcap > 0,
        ROWS=rows,
        TILE=tile,
        DIM=dim,
        num_warps=4 * triton.cdiv(dim, 128),
    )
