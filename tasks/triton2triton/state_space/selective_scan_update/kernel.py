"""One step of a selective state-space model: one program per sequence, head and 16 of its values."""

import triton
import triton.language as tl


@triton.jit
def step_values(
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
    num_groups,
    head_dim,
    state_dim,
    SOFTPLUS: tl.constexpr,
    VALUES: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    group = head // (num_heads // num_groups)
    p = tl.program_id(2) * VALUES + tl.arange(0, VALUES)
    known = p < head_dim
    here = (seq * num_heads + head) * head_dim + p
    # Within a sequence dt, its bias and D are strided alike.
    factor = head * dt_head_stride + p * dt_value_stride
    slot = tl.load(slots_ptr + seq).to(tl.int64)
    value = tl.zeros((VALUES,), tl.float32)
    if slot >= 0:
        x = tl.load(x_ptr + here, mask=known, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + seq * dt_seq_stride + factor, mask=known, other=0.0).to(tl.float32)
        if bias_ptr is not None:
            dt += tl.load(bias_ptr + factor, mask=known, other=0.0)
        if SOFTPLUS:
            # The larger part apart, so that no exponential overflows.
            dt = tl.maximum(dt, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(dt)))
        for start in range(0, state_dim, BLOCK_N):
            n = start + tl.arange(0, BLOCK_N)
            mask = known[:, None] & (n < state_dim)[None, :]
            A_places = (head * A_head_stride + p * A_value_stride)[:, None] + (n * A_state_stride)[None, :]
            A = tl.load(A_ptr + A_places, mask=mask, other=0.0)
            factors = (seq * num_groups + group) * state_dim + n
            B = tl.load(B_ptr + factors, mask=n < state_dim, other=0.0).to(tl.float32)
            C = tl.load(C_ptr + factors, mask=n < state_dim, other=0.0).to(tl.float32)
            places = ((slot * num_heads + head) * head_dim + p)[:, None] * state_dim + n[None, :]
            old = tl.load(state_ptr + places, mask=mask, other=0.0).to(tl.float32)
            new = tl.exp(dt[:, None] * A) * old + (dt * x)[:, None] * B[None, :]
            tl.store(state_ptr + places, new.to(state_ptr.dtype.element_ty), mask=mask)
            value += tl.sum(new * C[None, :], axis=1)
        if D_ptr is not None:
            value += x * tl.load(D_ptr + factor, mask=known, other=0.0)
        if z_ptr is not None:
            z = tl.load(z_ptr + here, mask=known, other=0.0).to(tl.float32)
            value *= z / (1.0 + tl.exp(-z))
    tl.store(out_ptr + here, value.to(out_ptr.dtype.element_ty), mask=known)


def selective_scan_update(x, dt, dt_bias, A, B, C, D, z, idx_mapping, state, dt_softplus, out):
    num_seqs, num_heads, head_dim = x.shape
    step_values[(num_seqs, num_heads, triton.cdiv(head_dim, 16))](
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
        B.shape[1],
        head_dim,
        B.shape[2],
        SOFTPLUS=dt_softplus,
        VALUES=16,
        BLOCK_N=16,
        num_warps=1,
    )
