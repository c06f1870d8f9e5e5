"""SGLang's states after ragged sequences, tuned by Triton: Mamba's kernel, with states before the first tokens."""

import triton
from sglang.kernels.ops.mamba.triton_ops.ssd_chunk_state import _chunk_state_varlen_kernel


def ssd_chunk_state_varlen(x, dt, dA_cumsum, B, prev_states, initial_states, cu_seqlens, states):
    tokens, heads, dim = x.shape
    groups, state_dim = B.shape[1:]

    def grid(meta):
        tiles = triton.cdiv(dim, meta["BLOCK_SIZE_M"]) * triton.cdiv(state_dim, meta["BLOCK_SIZE_N"])
        return tiles, states.shape[0], heads

    _chunk_state_varlen_kernel[grid](
        x,
        B,
        dt,
        dA_cumsum,
        prev_states,
        cu_seqlens,
        states,
        initial_states,
        dim,
        state_dim,
        dt.shape[2],
        tokens,
        heads // groups,
        *x.stride(),
        *B.stride(),
        dt.stride(1),
        dt.stride(0),
        dt.stride(2),
        dA_cumsum.stride(1),
        dA_cumsum.stride(0),
        dA_cumsum.stride(2),
        *prev_states.stride(),
        *states.stride(),
        *initial_states.stride(),
        HAS_INITSTATES=True,
    )
