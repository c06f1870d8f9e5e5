"""Gated delta rule with wide tiles of the state and one round of reductions a token.

After the update S' = S + key outer write, transpose(S') @ query is transpose(S) @ query + (key . query) * write: all
sums over head_dim are of the decayed state, so that none waits for another.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096
ENOUGH_PROGRAMS = 1024


@triton.jit
def _walk_sequence(
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
        in_dims, in_columns = dims < head_dim, columns < value_dim
        slot = tl.load(idx_mapping_ptr + seq).to(tl.int64)
        state_base = state_ptr + (slot * num_value_heads + head) * head_dim * value_dim
        state_ptrs = state_base + dims[:, None] * value_dim + columns[None, :]
        state_mask = in_dims[:, None] & in_columns[None, :]
        state = tl.load(state_ptrs, mask=state_mask, other=0.0)
        for token in range(begin, end):
            row = token * num_value_heads + head
            key_offsets = token * key_stride + key_head * head_dim + dims
            query = tl.load(query_ptr + key_offsets, mask=in_dims, other=0.0).to(tl.float32)
            key = tl.load(key_ptr + key_offsets, mask=in_dims, other=0.0).to(tl.float32)
            value = tl.load(
                value_ptr + token * value_stride + head * value_dim + columns, mask=in_columns, other=0.0
            ).to(tl.float32)
            beta = tl.load(beta_ptr + row).to(tl.float32)
            overlap = tl.sum(query * key, axis=0)
            query_factor = sm_scale
            key_factor = 1.0
            if NORMALIZE:
                query_factor = sm_scale / tl.sqrt(tl.sum(query * query, axis=0) + eps)
                key_factor = 1.0 / tl.sqrt(tl.sum(key * key, axis=0) + eps)
            if GATED:
                state *= tl.exp(tl.load(g_ptr + row))
            read = tl.sum(state * key[:, None], axis=0) * key_factor
            carried = tl.sum(state * query[:, None], axis=0)
            write = beta * (value - read) * key_factor
            out = (carried + overlap * write) * query_factor
            state += key[:, None] * write[None, :]
            tl.store(out_ptr + row * value_dim + columns, out.to(out_ptr.dtype.element_ty), mask=in_columns)
        tl.store(state_ptrs, state, mask=state_mask)


def fla_fused_recurrent(query, key, value, beta, g, cu_seqlens, idx_mapping, state, sm_scale, normalize, eps, out):
    num_seqs = idx_mapping.shape[0]
    _, num_value_heads, head_dim, value_dim = state.shape
    dims = triton.next_power_of_2(head_dim)
    columns = min(64, max(8, TILE_ELEMENTS // dims), max(8, triton.next_power_of_2(value_dim)))
    while columns > 8 and num_seqs * num_value_heads * triton.cdiv(value_dim, columns) < ENOUGH_PROGRAMS:
        columns //= 2
    _walk_sequence[(num_seqs * num_value_heads, triton.cdiv(value_dim, columns))](
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
        DIMS=dims,
        VALUES=columns,
        GATED=g is not None,
        NORMALIZE=normalize,
        num_warps=max(1, min(4, dims * columns // 512)),
    )
