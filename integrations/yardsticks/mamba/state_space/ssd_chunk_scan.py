"""Mamba's output of the scan, tuned by Triton. With a gate the engine also keeps what it gates, which nobody reads.

Of packed sequences the engine expects 0 in CB between two of them, where the task has anything: such cases fail.
"""

import torch
import triton
from mamba_ssm.ops.triton.ssd_chunk_scan import _chunk_scan_fwd_kernel


def chunk_strides(tensor):
    """Strides of batch, chunk, head and place in the chunk, as the engine orders them."""
    return tensor.stride(0), tensor.stride(2), tensor.stride(1), tensor.stride(3)


def ssd_chunk_scan(x, dt, dA_cumsum, C, CB, prev_states, D, z, seq_idx, out):
    batch, seq_len, heads, dim = x.shape
    groups, state_dim = C.shape[2:]
    chunks, size = dt.shape[2:]

    def grid(meta):
        tiles = triton.cdiv(size, meta["BLOCK_SIZE_M"]) * triton.cdiv(dim, meta["BLOCK_SIZE_N"])
        return tiles, batch * chunks, heads

    _chunk_scan_fwd_kernel[grid](
        CB,
        x,
        z,
        out,
        None if z is None else torch.empty_like(out),
        dt,
        dA_cumsum,
        seq_idx,
        C,
        prev_states,
        D,
        size,
        dim,
        state_dim,
        batch,
        seq_len,
        heads // groups,
        *CB.stride(),
        *x.stride(),
        *((0, 0, 0, 0) if z is None else z.stride()),
        *out.stride(),
        *chunk_strides(dt),
        *chunk_strides(dA_cumsum),
        *((0, 0) if seq_idx is None else seq_idx.stride()),
        *C.stride(),
        *prev_states.stride(),
        0 if D is None else D.stride(0),
        True,
        D is not None,
        D is None,
        BLOCK_SIZE_DSTATE=max(triton.next_power_of_2(state_dim), 16),
        HAS_Z=z is not None,
        HAS_SEQ_IDX=seq_idx is not None,
        IS_TRITON_22=True,
    )
