"""Outputs of a chunk on matrix cores: up to 64 tokens and 128 values a program.

The baseline has 64 values a program and loads and scales the queries anew for the next 64. Here token tiles of a chunk
are neighbours in the grid, so that its state comes out of the cache. float32 is multiplied as three TF32 products on
NVIDIA: with 32 tokens and 64 values a program and steps of 16 keys, four programs fit on an SM.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _chunk_output(
    query_ptr,
    value_ptr,
    g_ptr,
    scores_ptr,
    states_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    out_ptr,
    sm_scale,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    token_tiles,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
):
    """Token tiles of one chunk and head are neighbours, so that its state comes from memory once."""
    tile = tl.program_id(0) % token_tiles
    index = tl.program_id(0) // token_tiles
    chunk = index // num_heads
    head = index % num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * chunk_size
    length = tl.minimum(tl.load(cu_seqlens_ptr + seq + 1) - begin, chunk_size)
    if tile * TOKENS >= length:
        return
    i = tile * TOKENS + tl.arange(0, TOKENS)
    rows = (begin + i).to(tl.int64) * num_heads + head
    e = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    state = index.to(tl.int64) * head_dim
    acc = tl.zeros((TOKENS, VALUES), tl.float32)
    for start in range(0, head_dim, KEYS):
        d = start + tl.arange(0, KEYS)
        mask = (i < length)[:, None] & (d < head_dim)[None, :]
        query = tl.load(query_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0).to(tl.float32)
        gates = tl.load(g_ptr + rows[:, None] * head_dim + d[None, :], mask=mask, other=0.0)
        state_mask = (d < head_dim)[:, None] & (e < value_dim)[None, :]
        states = tl.load(states_ptr + (state + d)[:, None] * value_dim + e[None, :], mask=state_mask, other=0.0)
        decayed = query * tl.exp(gates) * sm_scale
        # Never true: a use of the sum outside of products makes Triton wait for them in every step.
        if start < 0:
            acc = -acc
        acc = tl.dot(decayed.to(states.dtype), states, acc, input_precision=PRECISION)
    for first in range(0, tl.minimum(length, tile * TOKENS + TOKENS), KEYS):
        j = first + tl.arange(0, KEYS)
        # Up to the end of 16 columns, so that whole vectors are read.
        mask = (i < length)[:, None] & ((j // 16 * 16)[None, :] <= i[:, None])
        scores = tl.load(scores_ptr + rows[:, None] * chunk_size + j[None, :], mask=mask, other=0.0)
        scores = tl.where(j[None, :] <= i[:, None], scores, 0.0)
        others = (begin + j).to(tl.int64) * num_heads + head
        value_mask = (j < length)[:, None] & (e < value_dim)[None, :]
        values = tl.load(value_ptr + others[:, None] * value_dim + e[None, :], mask=value_mask, other=0.0)
        if first < 0:  # never true, as above
            acc = -acc
        acc = tl.dot(scores, values, acc, input_precision=PRECISION)
    out_mask = (i < length)[:, None] & (e < value_dim)[None, :]
    tl.store(out_ptr + rows[:, None] * value_dim + e[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def kda_gla_fwd_o(query, value, g, scores, states, cu_seqlens, chunk_indices, sm_scale, out):
    num_heads, head_dim = query.shape[1:]
    value_dim, chunk_size = value.shape[2], scores.shape[2]
    wide = query.element_size() == 4
    tokens = max(16, min(32 if wide else 64, triton.next_power_of_2(chunk_size)))
    values = max(16, min(64 if wide else 128, triton.next_power_of_2(value_dim)))
    keys = 16 if wide else 32
    token_tiles = triton.cdiv(chunk_size, tokens)
    grid = (chunk_indices.shape[0] * num_heads * token_tiles, triton.cdiv(value_dim, values))
    _chunk_output[grid](
        query,
        value,
        g,
        scores,
        states,
        cu_seqlens,
        chunk_indices,
        out,
        sm_scale,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        token_tiles,
        TOKENS=tokens,
        KEYS=keys,
        VALUES=values,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
