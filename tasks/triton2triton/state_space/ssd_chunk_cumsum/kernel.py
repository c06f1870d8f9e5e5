"""Mamba-2 step sizes and decays: one program per chunk and eight heads, which are neighbours in `dt`."""

import triton
import triton.language as tl

HEADS = 8


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
    num_heads,
    chunk_size,
    SOFTPLUS: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    heads = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    real = heads < num_heads
    i = tl.arange(0, BLOCK)
    token = chunk * chunk_size + i
    inside = real[:, None] & ((i < chunk_size) & (token < seq_len))[None, :]
    source = (row * seq_len + token)[None, :] * num_heads + heads[:, None]
    steps = tl.load(dt_ptr + source, mask=inside, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        steps += tl.load(bias_ptr + heads, mask=real, other=0.0)[:, None]
    if SOFTPLUS:
        # The larger part apart, so that no exponential overflows.
        steps = tl.maximum(steps, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(steps)))
    steps = tl.minimum(tl.maximum(steps, dt_min), dt_max)
    steps = tl.where(inside, steps, 0.0)
    A = tl.load(A_ptr + heads, mask=real, other=0.0)
    places = (((row * num_heads + heads) * num_chunks + chunk) * chunk_size)[:, None] + i[None, :]
    written = real[:, None] & (i < chunk_size)[None, :]
    tl.store(dt_out_ptr + places, steps, mask=written)
    tl.store(cumsum_ptr + places, tl.cumsum(steps * A[:, None], axis=1), mask=written)


def ssd_chunk_cumsum(dt, A, dt_bias, dt_softplus, dt_min, dt_max, dt_out, dA_cumsum):
    batch, seq_len, num_heads = dt.shape
    num_chunks, chunk_size = dt_out.shape[2:]
    discretise_chunk[(batch * num_chunks, triton.cdiv(num_heads, HEADS))](
        dt,
        A,
        dt_bias,
        dt_out,
        dA_cumsum,
        dt_min,
        dt_max,
        seq_len,
        num_heads,
        chunk_size,
        SOFTPLUS=dt_softplus,
        BLOCK_HEADS=HEADS,
        BLOCK=triton.next_power_of_2(chunk_size),
    )
