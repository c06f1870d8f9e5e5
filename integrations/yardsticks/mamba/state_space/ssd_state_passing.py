"""Mamba's recurrence over chunks, tuned by Triton. It takes the first sequence of a row to have the id 0."""

import triton
from mamba_ssm.ops.triton.ssd_state_passing import _state_passing_fwd_kernel


def ssd_state_passing(states, dA_cumsum, initial_states, seq_idx, prev_states, final_states):
    batch, chunks, heads, rows, columns = states.shape
    dim = rows * columns
    decay = dA_cumsum[..., -1]
    _state_passing_fwd_kernel[lambda meta: (triton.cdiv(dim, meta["BLOCK_SIZE"]), batch, heads)](
        states,
        prev_states,
        final_states,
        decay,
        initial_states,
        seq_idx,
        dim,
        chunks,
        0 if seq_idx is None else seq_idx.shape[1],
        0 if seq_idx is None else dA_cumsum.shape[3],
        *states.stride()[:3],
        1,
        *prev_states.stride()[:3],
        1,
        *final_states.stride()[:2],
        1,
        decay.stride(0),
        decay.stride(2),
        decay.stride(1),
        *((0, 0, 0) if initial_states is None else (*initial_states.stride()[:2], 1)),
        *((0, 0) if seq_idx is None else seq_idx.stride()),
        HAS_INITSTATES=initial_states is not None,
        HAS_SEQ_IDX=seq_idx is not None,
    )
