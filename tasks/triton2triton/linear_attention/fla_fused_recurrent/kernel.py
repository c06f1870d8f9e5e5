"""Gated delta rule: one program per sequence, value head and 8 columns of the state, which it keeps while it walks.

Values are a multiple of 8, so that no program has columns beyond them.
"""

import triton
import triton.language as tl


@triton.jit
def walk_sequence(
    query_ptr,
    key_ptr,
    value_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    state_ptr,
    out_ptr,
    sm_scale,
    eps,
    key_stride,
    value_stride,
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    DIMS: tl.constexpr,
    VALUES: tl.constexpr,
    GATED: tl.constexpr,
    NORMALIZE: tl.constexpr,
):
    seq = tl.program_id(0) // num_value_heads
    head = tl.program_id(0) % num_value_heads
    key_head = head // (num_value_heads // num_key_heads)
    begin = tl.load(cu_seqlens_ptr + seq).to(tl.int64)
    end = tl.load(cu_seqlens_ptr + seq + 1).to(tl.int64)
    if begin < end:
        dims = tl.arange(0, DIMS)
        columns = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
        slot = tl.load(idx_mapping_ptr + seq).to(tl.int64)
        state_rows = (slot * num_value_heads + head) * head_dim + dims
        state_ptrs = state_ptr + state_rows[:, None] * value_dim + columns[None, :]
        state_mask = (dims < head_dim)[:, None]
        state = tl.load(state_ptrs, mask=state_mask, other=0.0)
        for token in range(begin, end):
            key_offsets = token * key_stride + key_head * head_dim + dims
            query = tl.load(query_ptr + key_offsets, mask=dims < head_dim, other=0.0).to(tl.float32)
            key = tl.load(key_ptr + key_offsets, mask=dims < head_dim, other=0.0).to(tl.float32)
            if NORMALIZE:
                query = query / tl.sqrt(tl.sum(query * query, axis=0) + eps)
                key = key / tl.sqrt(tl.sum(key * key, axis=0) + eps)
            row = token * num_value_heads + head
            if GATED:
                state *= tl.exp(tl.load(g_ptr + row))
            beta = tl.load(beta_ptr + row).to(tl.float32)
            value_offsets = row * value_dim + columns
            value = tl.load(value_ptr + token * value_stride + head * value_dim + columns).to(tl.float32)
            write = beta * (value - tl.sum(state * key[:, None], axis=0))
            state += key[:, None] * write[None, :]
            out = tl.sum(state * query[:, None], axis=0) * sm_scale
            tl.store(out_ptr + value_offsets, out.to(out_ptr.dtype.element_ty))
        tl.store(state_ptrs, state, mask=state_mask)


def fla_fused_recurrent(query, key, value, beta, g, cu_seqlens, idx_mapping, state, sm_scale, normalize, eps, out):
    num_seqs = idx_mapping.shape[0]
    _, num_value_heads, head_dim, value_dim = state.shape
    walk_sequence[(num_seqs * num_value_heads, triton.cdiv(value_dim, 8))](
        query,
        key,
        value,
        beta,
        g,
        cu_seqlens,
        idx_mapping,
        state,
        out,
        sm_scale,
        eps,
        key.stride(0),
        value.stride(0),
        key.shape[1],
        num_value_heads,
        head_dim,
        value_dim,
        DIMS=triton.next_power_of_2(head_dim),
        VALUES=8,
        GATED=g is not None,
        NORMALIZE=normalize,
    )
