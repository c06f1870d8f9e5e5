"""expect: wrong_result in heldout-35. Limit: at most two tiles of scores are read."""

import triton
import triton.language as tl


@triton.jit
def chunk_output(
    query_ptr,
    value_ptr,
    g_ptr,
    scores_ptr,
    states_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    out_ptr,
    sm_scale,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    TILE: tl.constexpr,
):
    chunk = tl.program_id(0) // num_heads
    head = tl.program_id(0) % num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * chunk_size
    length = tl.minimum(tl.load(cu_seqlens_ptr + seq + 1) - begin, chunk_size)
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    rows = (begin + i).to(tl.int64) * num_heads + head
    e = tl.program_id(2) * TILE + tl.arange(0, TILE)
    state = tl.program_id(0).to(tl.int64) * head_dim
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, head_dim, TILE):
        d = start + tl.arange(0, TILE)
        mask = (i < length)[:, None] & (d < head_dim)[None, :]
        query = tl.load(query_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0).to(tl.float32)
        gates = tl.load(g_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0)
        state_mask = (d < head_dim)[:, None] & (e < value_dim)[None, :]
        states = tl.load(states_ptr + (state + d)[:, None] * value_dim + e[None, :], mask=state_mask, other=0.0)
        acc += tl.dot((query * tl.exp(gates)).to(states.dtype), states, input_precision="ieee")
    acc *= sm_scale
    for tile in range(tl.minimum(tl.program_id(1) + 1, 2)):  # a chunk has two tiles at most
        j = tile * TILE + tl.arange(0, TILE)
        seen = (i < length)[:, None] & (j[None, :] <= i[:, None])
        scores = tl.load(scores_ptr + rows[:, None] * chunk_size + j[None, :], mask=seen, other=0.0)
        others = (begin + j).to(tl.int64) * num_heads + head
        value_mask = (j < length)[:, None] & (e < value_dim)[None, :]
        values = tl.load(value_ptr + others[:, None] * value_dim + e[None, :], mask=value_mask, other=0.0)
        acc += tl.dot(scores, values, input_precision="ieee")
    out_mask = (i < length)[:, None] & (e < value_dim)[None, :]
    tl.store(out_ptr + rows[:, None] * value_dim + e[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def kda_gla_fwd_o(query, value, g, scores, states, cu_seqlens, chunk_indices, sm_scale, out):
    num_heads, head_dim = query.shape[1:]
    value_dim, chunk_size = value.shape[2], scores.shape[2]
    # float32 operands take twice the memory, and their products no matrix units.
    tile = 32 if query.element_size() == 4 else 64
    grid = (chunk_indices.shape[0] * num_heads, triton.cdiv(chunk_size, tile), triton.cdiv(value_dim, tile))
    chunk_output[grid](
        query,
        value,
        g,
        scores,
        states,
        cu_seqlens,
        chunk_indices,
        out,
        sm_scale,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        TILE=tile,
    )
