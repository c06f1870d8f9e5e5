"""Mamba's states of chunks, tuned by Triton."""

import triton
from mamba_ssm.ops.triton.ssd_chunk_state import _chunk_state_fwd_kernel


def chunk_strides(tensor):
    """Strides of batch, chunk, head and place in the chunk, as the engine orders them."""
    return tensor.stride(0), tensor.stride(2), tensor.stride(1), tensor.stride(3)


def ssd_chunk_state(x, dt, dA_cumsum, B, seq_idx, states):
    batch, seq_len, heads, dim = x.shape
    groups, state_dim = B.shape[2:]
    chunks, size = dt.shape[2:]

    def grid(meta):
        tiles = triton.cdiv(dim, meta["BLOCK_SIZE_M"]) * triton.cdiv(state_dim, meta["BLOCK_SIZE_N"])
        return tiles, batch * chunks, heads

    _chunk_state_fwd_kernel[grid](
        x,
        B,
        states,
        dt,
        dA_cumsum,
        seq_idx,
        dim,
        state_dim,
        size,
        batch,
        seq_len,
        heads // groups,
        *x.stride(),
        *B.stride(),
        *states.stride(),
        *chunk_strides(dt),
        *chunk_strides(dA_cumsum),
        *((0, 0) if seq_idx is None else seq_idx.stride()),
        HAS_SEQ_IDX=seq_idx is not None,
    )
