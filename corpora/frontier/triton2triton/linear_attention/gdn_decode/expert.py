"""Gated delta rule, one token, with large tiles of the state that are loaded before anything else is computed.

After the update S' = S + write outer key, S' @ query is S @ query + (key . query) * write: both sums over head_dim are
of the decayed state, so that none waits for the other. Norms enter as factors of these sums.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 8192
ENOUGH_PROGRAMS = 1056


@triton.jit
def _step(
    query_ptr,
    key_ptr,
    value_ptr,
    a_ptr,
    b_ptr,
    A_log_ptr,
    dt_bias_ptr,
    idx_mapping_ptr,
    state_ptr,
    out_ptr,
    sm_scale,
    eps,
    key_stride,
    value_stride,
    slot_stride,
    group,
    num_value_heads,
    head_dim,
    value_dim,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    head = tl.program_id(1)
    seq = tl.program_id(2).to(tl.int64)
    in_rows = rows < value_dim
    row = seq * num_value_heads + head
    out_ptrs = out_ptr + row * value_dim + rows
    slot = tl.load(idx_mapping_ptr + seq).to(tl.int64)
    if slot < 0:
        tl.store(out_ptrs, tl.zeros((ROWS,), out_ptr.dtype.element_ty), mask=in_rows)
    else:
        dims = tl.arange(0, DIMS)
        inside = dims < head_dim
        places = (head * value_dim + rows)[:, None] * head_dim + dims[None, :]
        state_ptrs = state_ptr + slot * slot_stride + places
        mask = in_rows[:, None] & inside[None, :]
        state = tl.load(state_ptrs, mask=mask, other=0.0)
        key_offsets = seq * key_stride + (head // group) * head_dim + dims
        query = tl.load(query_ptr + key_offsets, mask=inside, other=0.0).to(tl.float32)
        key = tl.load(key_ptr + key_offsets, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(value_ptr + seq * value_stride + head * value_dim + rows, mask=in_rows, other=0.0)
        gate = tl.load(a_ptr + row).to(tl.float32) + tl.load(dt_bias_ptr + head)
        softplus = tl.maximum(gate, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(gate)))
        decay = tl.exp(-tl.exp(tl.load(A_log_ptr + head)) * softplus)
        beta = tl.sigmoid(tl.load(b_ptr + row).to(tl.float32))
        query *= sm_scale * tl.rsqrt(tl.sum(query * query, axis=0) + eps)
        key *= tl.rsqrt(tl.sum(key * key, axis=0) + eps)
        overlap = tl.sum(query * key, axis=0)
        state *= decay
        read = tl.sum(state * key[None, :], axis=1)
        carried = tl.sum(state * query[None, :], axis=1)
        write = beta * (value.to(tl.float32) - read)
        tl.store(state_ptrs, state + write[:, None] * key[None, :], mask=mask)
        tl.store(out_ptrs, (carried + overlap * write).to(out_ptr.dtype.element_ty), mask=in_rows)


def gdn_decode(query, key, value, a, b, A_log, dt_bias, idx_mapping, state, sm_scale, eps, out):
    num_seqs, num_key_heads, head_dim = key.shape
    _, num_value_heads, value_dim = value.shape
    dims = triton.next_power_of_2(head_dim)
    rows = min(triton.next_power_of_2(value_dim), max(8, TILE_ELEMENTS // dims))
    while rows > 8 and num_seqs * num_value_heads * triton.cdiv(value_dim, rows) < ENOUGH_PROGRAMS:
        rows //= 2
    _step[(triton.cdiv(value_dim, rows), num_value_heads, num_seqs)](
        query,
        key,
        value,
        a,
        b,
        A_log,
        dt_bias,
        idx_mapping,
        state,
        out,
        sm_scale,
        eps,
        key.stride(0),
        value.stride(0),
        state.stride(0),
        num_value_heads // num_key_heads,
        num_value_heads,
        head_dim,
        value_dim,
        DIMS=dims,
        ROWS=rows,
        num_warps=max(1, min(4, dims * rows // 512)),
    )
