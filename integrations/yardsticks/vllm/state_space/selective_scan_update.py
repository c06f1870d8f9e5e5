"""vLLM's step of a selective state-space model, with the launch parameters that it takes where none are tuned.

The engine also writes rows of padding, which a kernel of ours clears after it; its time counts.
"""

import triton
import triton.language as tl
from vllm.model_executor.layers.mamba.ops.mamba_ssm import _selective_scan_update_kernel


@triton.jit
def clear_padding(slots, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if tl.load(slots + row) >= 0:
        return
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = out + row.to(tl.int64) * columns + column
    tl.store(place, tl.zeros((BLOCK,), out.dtype.element_ty), mask=column < columns)


def launch_parameters(state_dim):
    """Rows of a tile and warps on other GPUs than Blackwell's."""
    for most, rows in ((16, 32), (32, 16), (64, 8), (128, 4)):
        if state_dim <= most:
            return rows, 4
    return 4, 8


def selective_scan_update(x, dt, dt_bias, A, B, C, D, z, idx_mapping, state, dt_softplus, out):
    seqs, heads, dim = x.shape
    groups, state_dim = B.shape[1:]
    rows, warps = launch_parameters(state_dim)
    _selective_scan_update_kernel[(triton.cdiv(dim, rows), seqs, heads)](
        state,
        None,
        x,
        dt,
        dt_bias,
        A,
        B,
        C,
        D,
        z,
        out,
        idx_mapping,
        idx_mapping,
        -1,
        None,
        None,
        seqs,
        heads,
        dim,
        state_dim,
        heads // groups,
        *state.stride(),
        *x.stride(),
        *dt.stride(),
        *((0, 0) if dt_bias is None else dt_bias.stride()),
        *A.stride(),
        *B.stride(),
        *C.stride(),
        *((0, 0) if D is None else D.stride()),
        *((0, 0, 0) if z is None else z.stride()),
        *out.stride(),
        1,
        1,
        1,
        1,
        dt_softplus,
        False,
        rows,
        num_warps=warps,
        USE_RS_ROUNDING=False,
        PHILOX_ROUNDS=0,
    )
    clear_padding[(seqs, triton.cdiv(heads * dim, 1024))](idx_mapping, out, heads * dim, 1024)
