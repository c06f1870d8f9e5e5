"""Mamba-2 step sizes and decays: one program per chunk and head, the whole chunk in one block."""

import triton
import triton.language as tl


@triton.jit
def discretise_chunk(
    dt_ptr,
    A_ptr,
    bias_ptr,
    dt_out_ptr,
    cumsum_ptr,
    dt_min,
    dt_max,
    seq_len,
    chunk_size,
    SOFTPLUS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    i = tl.arange(0, BLOCK)
    token = chunk * chunk_size + i
    inside = (i < chunk_size) & (token < seq_len)
    steps = tl.load(dt_ptr + (row * seq_len + token) * num_heads + head, mask=inside, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        steps += tl.load(bias_ptr + head)
    if SOFTPLUS:
        # The larger part apart, so that no exponential overflows.
        steps = tl.maximum(steps, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(steps)))
    steps = tl.minimum(tl.maximum(steps, dt_min), dt_max)
    steps = tl.where(inside, steps, 0.0)
    places = ((row * num_heads + head) * num_chunks + chunk) * chunk_size + i
    tl.store(dt_out_ptr + places, steps, mask=i < chunk_size)
    tl.store(cumsum_ptr + places, tl.cumsum(steps * tl.load(A_ptr + head), axis=0), mask=i < chunk_size)


def ssd_chunk_cumsum(dt, A, dt_bias, dt_softplus, dt_min, dt_max, dt_out, dA_cumsum):
    batch, seq_len, num_heads = dt.shape
    num_chunks, chunk_size = dt_out.shape[2:]
    discretise_chunk[(batch * num_chunks, num_heads)](
        dt,
        A,
        dt_bias,
        dt_out,
        dA_cumsum,
        dt_min,
        dt_max,
        seq_len,
        chunk_size,
        SOFTPLUS=dt_softplus,
        BLOCK=triton.next_power_of_2(chunk_size),
    )
