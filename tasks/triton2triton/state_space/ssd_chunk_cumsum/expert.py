"""Mamba-2 step sizes and decays in tiles of tokens by heads: neighbouring heads are neighbours in memory."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def discretise_tile(
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
    STEPS: tl.constexpr,
    HEADS: tl.constexpr,
):
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    known = heads < num_heads
    i = tl.arange(0, STEPS)
    token = chunk * chunk_size + i
    inside = ((i < chunk_size) & (token < seq_len))[:, None] & known[None, :]
    source = (row * seq_len + token)[:, None] * num_heads + heads[None, :]
    steps = tl.load(dt_ptr + source, mask=inside, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        steps += tl.load(bias_ptr + heads, mask=known, other=0.0)[None, :]
    if SOFTPLUS:
        steps = tl.maximum(steps, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(steps)))
    steps = tl.where(inside, tl.minimum(tl.maximum(steps, dt_min), dt_max), 0.0)
    # From here on along the chunk, which is contiguous in the results.
    steps = tl.trans(steps)
    sums = tl.cumsum(steps * tl.load(A_ptr + heads, mask=known, other=0.0)[:, None], axis=1)
    places = (((row * num_heads + heads) * num_chunks + chunk) * chunk_size)[:, None] + i[None, :]
    mask = known[:, None] & (i < chunk_size)[None, :]
    tl.store(dt_out_ptr + places, steps, mask=mask)
    tl.store(cumsum_ptr + places, sums, mask=mask)


def ssd_chunk_cumsum(dt, A, dt_bias, dt_softplus, dt_min, dt_max, dt_out, dA_cumsum):
    batch, seq_len, num_heads = dt.shape
    num_chunks, chunk_size = dt_out.shape[2:]
    steps = triton.next_power_of_2(chunk_size)
    heads = max(1, min(32, TILE_ELEMENTS // steps, triton.next_power_of_2(num_heads)))
    # Sums of heads beyond the last would be in vain: of 24 heads, a tile of 32 has a quarter.
    while heads > 8 and num_heads % heads:
        heads //= 2
    discretise_tile[(batch * num_chunks, triton.cdiv(num_heads, heads))](
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
        STEPS=steps,
        HEADS=heads,
        num_warps=4,
    )
