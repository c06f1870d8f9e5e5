"""expect: wrong_result in heldout-20. Size limit: a tile of 64 tokens is taken for the whole chunk, which may have 128.

Outputs of a chunk: one program per head and tile of tokens and values, from the state, then from the chunk.
"""

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
    COLUMNS: tl.constexpr,
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
    e = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    state = tl.program_id(0).to(tl.int64) * head_dim
    acc = tl.zeros((TILE, COLUMNS), tl.float32)
    for start in range(0, head_dim, COLUMNS):
        d = start + tl.arange(0, COLUMNS)
        mask = (i < length)[:, None] & (d < head_dim)[None, :]
        query = tl.load(query_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0).to(tl.float32)
        gates = tl.load(g_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0)
        state_mask = (d < head_dim)[:, None] & (e < value_dim)[None, :]
        states = tl.load(states_ptr + (state + d)[:, None] * value_dim + e[None, :], mask=state_mask, other=0.0)
        acc += tl.dot((query * tl.exp(gates)).to(states.dtype), states, input_precision="ieee")
    acc *= sm_scale
    # The tokens of the chunk are those of the tile.
    seen = (i < length)[:, None] & (i[None, :] <= i[:, None])
    scores = tl.load(scores_ptr + rows[:, None] * chunk_size + i[None, :], mask=seen, other=0.0)
    out_mask = (i < length)[:, None] & (e < value_dim)[None, :]
    values = tl.load(value_ptr + rows[:, None] * value_dim + e[None, :], mask=out_mask, other=0.0)
    acc += tl.dot(scores, values, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * value_dim + e[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def kda_gla_fwd_o(query, value, g, scores, states, cu_seqlens, chunk_indices, sm_scale, out):
    num_heads, head_dim = query.shape[1:]
    value_dim, chunk_size = value.shape[2], scores.shape[2]
    tile = 64
    columns = 32
    grid = (chunk_indices.shape[0] * num_heads, triton.cdiv(chunk_size, tile), triton.cdiv(value_dim, columns))
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
        COLUMNS=columns,
    )
