"""One step of a selective state-space model with whole rows of the state in tiles that keep many loads in flight."""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def step_tile(
    x_ptr,
    dt_ptr,
    bias_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    D_ptr,
    z_ptr,
    slots_ptr,
    state_ptr,
    out_ptr,
    dt_seq_stride,
    dt_head_stride,
    dt_value_stride,
    A_head_stride,
    A_value_stride,
    A_state_stride,
    num_seqs,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    tiles,
    SOFTPLUS: tl.constexpr,
    VALUES: tl.constexpr,
    STATE: tl.constexpr,
):
    # Sequences are neighbours in time, so that the rates A of a tile are read from memory once.
    seq = (tl.program_id(0) % num_seqs).to(tl.int64)
    part = tl.program_id(0) // num_seqs
    head = part // tiles
    group = head // (num_heads // num_groups)
    p = part % tiles * VALUES + tl.arange(0, VALUES)
    n = tl.arange(0, STATE)
    known, mask = p < head_dim, (p < head_dim)[:, None] & (n < state_dim)[None, :]
    here = (seq * num_heads + head) * head_dim + p
    # Within a sequence dt, its bias and D are strided alike.
    factor = head * dt_head_stride + p * dt_value_stride
    slot = tl.load(slots_ptr + seq).to(tl.int64)
    if slot < 0:
        tl.store(out_ptr + here, tl.zeros((VALUES,), out_ptr.dtype.element_ty), mask=known)
    else:
        place = state_ptr + ((slot * num_heads + head) * head_dim + p)[:, None] * state_dim + n[None, :]
        old = tl.load(place, mask=mask, other=0.0).to(tl.float32)
        A_places = (head * A_head_stride + p * A_value_stride)[:, None] + (n * A_state_stride)[None, :]
        A = tl.load(A_ptr + A_places, mask=mask, other=0.0)
        factors = (seq * num_groups + group) * state_dim + n
        B = tl.load(B_ptr + factors, mask=n < state_dim, other=0.0).to(tl.float32)
        C = tl.load(C_ptr + factors, mask=n < state_dim, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + here, mask=known, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + seq * dt_seq_stride + factor, mask=known, other=0.0).to(tl.float32)
        if bias_ptr is not None:
            dt += tl.load(bias_ptr + factor, mask=known, other=0.0)
        if SOFTPLUS:
            dt = tl.maximum(dt, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(dt)))
        new = tl.exp(dt[:, None] * A) * old + (dt * x)[:, None] * B[None, :]
        tl.store(place, new.to(state_ptr.dtype.element_ty), mask=mask)
        value = tl.sum(new * C[None, :], axis=1)
        if D_ptr is not None:
            value += x * tl.load(D_ptr + factor, mask=known, other=0.0)
        if z_ptr is not None:
            z = tl.load(z_ptr + here, mask=known, other=0.0).to(tl.float32)
            value *= z / (1.0 + tl.exp(-z))
        tl.store(out_ptr + here, value.to(out_ptr.dtype.element_ty), mask=known)


def selective_scan_update(x, dt, dt_bias, A, B, C, D, z, idx_mapping, state, dt_softplus, out):
    num_seqs, num_heads, head_dim = x.shape
    num_groups, state_dim = B.shape[1:]
    width = triton.next_power_of_2(state_dim)
    values = max(1, min(TILE_ELEMENTS // width, triton.next_power_of_2(head_dim)))
    tiles = triton.cdiv(head_dim, values)
    step_tile[(num_seqs * num_heads * tiles,)](
        x,
        dt,
        dt_bias,
        A,
        B,
        C,
        D,
        z,
        idx_mapping,
        state,
        out,
        *dt.stride(),
        *A.stride(),
        num_seqs,
        num_heads,
        num_groups,
        head_dim,
        state_dim,
        tiles,
        SOFTPLUS=dt_softplus,
        VALUES=values,
        STATE=width,
        num_warps=4,
    )
