"""Mamba's step sizes and running log-decays, tuned by Triton."""

import triton
from mamba_ssm.ops.triton.ssd_chunk_state import _chunk_cumsum_fwd_kernel


def chunk_strides(tensor):
    """Strides of batch, chunk, head and place in the chunk, as the engine orders them."""
    return tensor.stride(0), tensor.stride(2), tensor.stride(1), tensor.stride(3)


def ssd_chunk_cumsum(dt, A, dt_bias, dt_softplus, dt_min, dt_max, dt_out, dA_cumsum):
    batch, seq_len, heads = dt.shape
    chunks, size = dt_out.shape[2:]
    _chunk_cumsum_fwd_kernel[lambda meta: (batch, chunks, triton.cdiv(heads, meta["BLOCK_SIZE_H"]))](
        dt,
        A,
        dt_bias,
        dt_out,
        dA_cumsum,
        batch,
        seq_len,
        heads,
        size,
        dt_min,
        dt_max,
        *dt.stride(),
        A.stride(0),
        0 if dt_bias is None else dt_bias.stride(0),
        *chunk_strides(dt_out),
        *chunk_strides(dA_cumsum),
        dt_softplus,
        HAS_DT_BIAS=dt_bias is not None,
        BLOCK_SIZE_CHUNK=triton.next_power_of_2(size),
    )
