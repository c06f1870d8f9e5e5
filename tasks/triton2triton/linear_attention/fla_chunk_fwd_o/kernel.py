"""Output of chunked linear attention: one program per chunk, value head and up to 64 columns of the value.

It multiplies the chunk's queries with the state and with the chunk's keys in one loop over head_dim, then the decayed,
causal scores with the values.
"""

import torch
import triton
import triton.language as tl

# Of float32: matrix units multiply three pairs of TF32 on NVIDIA, float32 itself on AMD.
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")


@triton.jit
def chunk_output(
    query_ptr,
    key_ptr,
    value_ptr,
    states_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    out_ptr,
    sm_scale,
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    CHUNK: tl.constexpr,
    DIMS: tl.constexpr,
    VALUES: tl.constexpr,
    GATED: tl.constexpr,
):
    chunk = (tl.program_id(0) // num_value_heads).to(tl.int64)
    head = tl.program_id(0) % num_value_heads
    key_head = head // (num_value_heads // num_key_heads)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        number = tl.load(chunk_indices_ptr + chunk * 2 + 1)
        begin = tl.load(cu_seqlens_ptr + seq) + number * CHUNK
        length = tl.load(cu_seqlens_ptr + seq + 1) - begin
        rows = tl.arange(0, CHUNK)
        inside = rows < length
        tokens = begin.to(tl.int64) + rows
        columns = tl.program_id(1) * VALUES + tl.arange(0, VALUES)

        carried = tl.zeros((CHUNK, VALUES), tl.float32)
        scores = tl.zeros((CHUNK, CHUNK), tl.float32)
        query_rows = (tokens * num_key_heads + key_head) * head_dim
        state_base = states_ptr + (chunk * num_value_heads + head) * head_dim * value_dim
        for start in range(0, head_dim, DIMS):
            dims = start + tl.arange(0, DIMS)
            mask = inside[:, None] & (dims < head_dim)[None, :]
            query = tl.load(query_ptr + query_rows[:, None] + dims[None, :], mask=mask, other=0.0)
            key = tl.load(key_ptr + query_rows[:, None] + dims[None, :], mask=mask, other=0.0)
            state_mask = (dims < head_dim)[:, None] & (columns < value_dim)[None, :]
            state = tl.load(
                state_base + dims[:, None] * value_dim + columns[None, :],
                mask=state_mask,
                other=0.0,
            )
            carried += tl.dot(query, state, input_precision=PRECISION)
            scores += tl.dot(query, tl.trans(key), input_precision=PRECISION)

        if GATED:
            g = tl.load(g_ptr + tokens * num_value_heads + head, mask=inside, other=0.0)
            carried *= tl.exp(g)[:, None]
            scores *= tl.exp(g[:, None] - g[None, :])
        scores = tl.where(rows[:, None] >= rows[None, :], scores, 0.0)
        value_rows = (tokens * num_value_heads + head) * value_dim
        value_mask = inside[:, None] & (columns < value_dim)[None, :]
        value = tl.load(
            value_ptr + value_rows[:, None] + columns[None, :],
            mask=value_mask,
            other=0.0,
        )
        out = (carried + tl.dot(scores.to(value.dtype), value, input_precision=PRECISION)) * sm_scale
        out = out.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + value_rows[:, None] + columns[None, :], out, mask=value_mask)


def fla_chunk_fwd_o(query, key, value, states, g, cu_seqlens, chunk_indices, chunk_size, sm_scale, out):
    num_chunks, num_value_heads, head_dim, value_dim = states.shape
    # float32 operands take twice the memory, and three products twice the registers.
    block = 32 if query.element_size() == 4 else 64
    chunk_output[(num_chunks * num_value_heads, triton.cdiv(value_dim, block))](
        query,
        key,
        value,
        states,
        g,
        cu_seqlens,
        chunk_indices,
        out,
        sm_scale,
        key.shape[1],
        num_value_heads,
        head_dim,
        value_dim,
        CHUNK=chunk_size,
        DIMS=block,
        VALUES=block,
        GATED=g is not None,
    )
