"""Gated delta rule, one token: one program per sequence, value head and 8 rows of the state."""

import triton
import triton.language as tl


@triton.jit
def step(
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
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
):
    seq = (tl.program_id(0) // num_value_heads).to(tl.int64)
    head = tl.program_id(0) % num_value_heads
    key_head = head // (num_value_heads // num_key_heads)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    out_ptrs = out_ptr + (seq * num_value_heads + head) * value_dim + rows
    slot = tl.load(idx_mapping_ptr + seq).to(tl.int64)
    if slot < 0:
        tl.store(out_ptrs, tl.zeros((ROWS,), out_ptr.dtype.element_ty))
    else:
        dims = tl.arange(0, DIMS)
        inside = dims < head_dim
        key_offsets = seq * key_stride + key_head * head_dim + dims
        query = tl.load(query_ptr + key_offsets, mask=inside, other=0.0).to(tl.float32)
        key = tl.load(key_ptr + key_offsets, mask=inside, other=0.0).to(tl.float32)
        query = query / tl.sqrt(tl.sum(query * query, axis=0) + eps)
        key = key / tl.sqrt(tl.sum(key * key, axis=0) + eps)
        gate = tl.load(a_ptr + seq * num_value_heads + head).to(tl.float32) + tl.load(dt_bias_ptr + head)
        softplus = tl.maximum(gate, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(gate)))
        decay = tl.exp(-tl.exp(tl.load(A_log_ptr + head)) * softplus)
        beta = tl.sigmoid(tl.load(b_ptr + seq * num_value_heads + head).to(tl.float32))
        value = tl.load(value_ptr + seq * value_stride + head * value_dim + rows).to(tl.float32)
        places = (head * value_dim + rows)[:, None] * head_dim + dims[None, :]
        state_ptrs = state_ptr + slot * slot_stride + places
        state = decay * tl.load(state_ptrs, mask=inside[None, :], other=0.0)
        write = beta * (value - tl.sum(state * key[None, :], axis=1))
        state += write[:, None] * key[None, :]
        out = sm_scale * tl.sum(state * query[None, :], axis=1)
        tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty))
        tl.store(state_ptrs, state, mask=inside[None, :])


def gdn_decode(query, key, value, a, b, A_log, dt_bias, idx_mapping, state, sm_scale, eps, out):
    num_seqs, num_key_heads, head_dim = key.shape
    _, num_value_heads, value_dim = value.shape
    step[(num_seqs * num_value_heads, value_dim // 8)](
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
        num_key_heads,
        num_value_heads,
        head_dim,
        value_dim,
        DIMS=triton.next_power_of_2(head_dim),
        ROWS=8,
    )
