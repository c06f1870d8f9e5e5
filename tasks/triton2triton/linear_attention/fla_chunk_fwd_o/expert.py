"""Output of chunked linear attention, up to 128 columns a program: queries, keys and scores are needed once for them.

The baseline computes the scores of a chunk anew for every 64 columns. float32 keeps 64, since it is multiplied as three
TF32 products on NVIDIA, where 128 would take more registers than there are. Lengths of rows are constants: where they
are a whole number of pieces, no mask is needed along them, and sums start from what was there before.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _chunk_output(
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
    HEAD_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
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
        value_offsets = ((tokens * num_value_heads + head) * VALUE_DIM)[:, None] + columns[None, :]
        value_mask = inside[:, None] & (columns < VALUE_DIM)[None, :]
        if GATED:
            g = tl.load(g_ptr + tokens * num_value_heads + head, mask=inside, other=0.0)

        carried = tl.zeros((CHUNK, VALUES), tl.float32)
        scores = tl.zeros((CHUNK, CHUNK), tl.float32)
        key_rows = (tokens * num_key_heads + key_head) * HEAD_DIM
        state_base = states_ptr + (chunk * num_value_heads + head) * HEAD_DIM * VALUE_DIM
        for start in range(0, HEAD_DIM, DIMS):
            dims = start + tl.arange(0, DIMS)
            if HEAD_DIM % DIMS == 0:
                mask = inside[:, None]
                state_mask = (columns < VALUE_DIM)[None, :]
            else:
                mask = inside[:, None] & (dims < HEAD_DIM)[None, :]
                state_mask = (dims < HEAD_DIM)[:, None] & (columns < VALUE_DIM)[None, :]
            query = tl.load(query_ptr + key_rows[:, None] + dims[None, :], mask=mask, other=0.0)
            key = tl.load(key_ptr + key_rows[:, None] + dims[None, :], mask=mask, other=0.0)
            state = tl.load(state_base + dims[:, None] * VALUE_DIM + columns[None, :], mask=state_mask, other=0.0)
            scores = tl.dot(query, tl.trans(key), scores, input_precision=PRECISION)
            carried = tl.dot(query, state, carried, input_precision=PRECISION)

        causal = rows[:, None] >= rows[None, :]
        value = tl.load(value_ptr + value_offsets, mask=value_mask, other=0.0)
        if GATED:
            carried *= tl.exp(g)[:, None]
            scores *= tl.exp(tl.where(causal, g[:, None] - g[None, :], 0.0))
        scores = tl.where(causal, scores * sm_scale, 0.0)
        out = tl.dot(scores.to(value.dtype), value, carried * sm_scale, input_precision=PRECISION)
        tl.store(out_ptr + value_offsets, out.to(out_ptr.dtype.element_ty), mask=value_mask)


def fla_chunk_fwd_o(query, key, value, states, g, cu_seqlens, chunk_indices, chunk_size, sm_scale, out):
    num_chunks, num_value_heads, head_dim, value_dim = states.shape
    wide = query.element_size() == 4
    columns = min(64 if wide else 128, max(16, triton.next_power_of_2(value_dim)))
    dims = 32 if wide else min(64, max(16, triton.next_power_of_2(head_dim)))
    _chunk_output[(num_chunks * num_value_heads, triton.cdiv(value_dim, columns))](
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
        HEAD_DIM=head_dim,
        VALUE_DIM=value_dim,
        CHUNK=chunk_size,
        DIMS=dims,
        VALUES=columns,
        GATED=g is not None,
        num_warps=8 if chunk_size == 64 and not wide else 4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=(1 if wide else 2) if torch.version.hip else 3,
    )
