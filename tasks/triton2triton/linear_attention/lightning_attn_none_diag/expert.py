"""Contribution of earlier chunks on matrix cores: 128 tokens a program, over all values, so that queries are read once.

The state is float32, and where the query has 16 bits, it is split into its rounding to 16 bits and the rounded rest:
two fast products replace one in float32. Steps of 32 keys leave room for two programs on an SM. float32 queries take
three TF32 products on NVIDIA, in tiles of 64 × 64: larger ones leave room for fewer warps on an SM.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _earlier_chunks(
    query_ptr,
    slopes_ptr,
    states_ptr,
    out_ptr,
    seq_len,
    num_heads,
    chunk_size,
    num_chunks,
    token_tiles,
    HEAD_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """Token tiles of one chunk are neighbours: the second finds the state in the cache."""
    tile = tl.program_id(0) % token_tiles
    index = (tl.program_id(0) // token_tiles).to(tl.int64)
    head = index // num_chunks % num_heads
    i = tile * TOKENS + tl.arange(0, TOKENS)
    t = index % num_chunks * chunk_size + i
    inside = (i < chunk_size) & (t < seq_len)
    rows = (index // num_chunks // num_heads * seq_len + t) * num_heads + head
    e = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    acc = tl.zeros((TOKENS, VALUES), tl.float32)
    for start in range(0, HEAD_DIM, KEYS):
        d = start + tl.arange(0, KEYS)
        query_mask = inside[:, None] & (d < HEAD_DIM)[None, :]
        queries = tl.load(query_ptr + rows[:, None] * HEAD_DIM + d[None, :], mask=query_mask, other=0.0)
        state_mask = (d < HEAD_DIM)[:, None] & (e < VALUE_DIM)[None, :]
        state_rows = (index * HEAD_DIM + d)[:, None] * VALUE_DIM
        states = tl.load(states_ptr + state_rows + e[None, :], mask=state_mask, other=0.0)
        if SPLIT:
            high = states.to(queries.dtype)
            low = (states - high.to(tl.float32)).to(queries.dtype)
            acc = tl.dot(queries, low, acc, input_precision=PRECISION)
            acc = tl.dot(queries, high, acc, input_precision=PRECISION)
        else:
            acc = tl.dot(queries, states, acc, input_precision=PRECISION)
    decay = tl.exp(-tl.load(slopes_ptr + head) * (i + 1))
    place = out_ptr + rows[:, None] * VALUE_DIM + e[None, :]
    out_mask = inside[:, None] & (e < VALUE_DIM)[None, :]
    out = tl.load(place, mask=out_mask, other=0.0).to(tl.float32) + acc * decay[:, None]
    tl.store(place, out.to(out_ptr.dtype.element_ty), mask=out_mask)


def lightning_attn_none_diag(query, slopes, states, out, chunk_size):
    batch, seq_len, num_heads, head_dim = query.shape
    num_chunks, _, value_dim = states.shape[2:]
    split = query.element_size() == 2
    tokens = max(16, min(128 if split else 64, triton.next_power_of_2(min(chunk_size, seq_len))))
    values = max(16, min(128 if split else 64, triton.next_power_of_2(value_dim)))
    keys = max(16, min(32, triton.next_power_of_2(head_dim)))
    token_tiles = triton.cdiv(min(chunk_size, seq_len), tokens)
    grid = (batch * num_heads * num_chunks * token_tiles, triton.cdiv(value_dim, values))
    _earlier_chunks[grid](
        query,
        slopes,
        states,
        out,
        seq_len,
        num_heads,
        chunk_size,
        num_chunks,
        token_tiles,
        HEAD_DIM=head_dim,
        VALUE_DIM=value_dim,
        TOKENS=tokens,
        KEYS=keys,
        VALUES=values,
        SPLIT=split,
        num_warps=8 if tokens * values >= 16384 else 4,
        # With four stages, three steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 4,
    )
