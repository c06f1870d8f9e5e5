"""Last states of ragged sequences, with all loads of a program on the way at once and tiles of a head side by side.

A program of the baseline waits three times: for the sequence's ends, then within a branch for the state that is held,
of which it makes the accumulator, and only then for the first tokens. Here a pointer is chosen instead, the held state
is on its way during the products and is added to them: two waits. Offsets have 32 bits, enough for every tensor.

The baseline's tiles of one head are as many programs apart as there are sequences and heads, so that x comes from
memory once for every 64 columns of the state: 266 MB with the states where 217 do for Mamba-2 2.7B, 254 and 194 for
Codestral Mamba, 555 and 487 for Nemotron-H, 399 and 257 for Falcon-H1 (averages of random lengths). Here they are
neighbours and share x in the second-level cache, as heads share B. Tiles of 64 x 64 by steps of 32 tokens have the same
registers and shared memory as before. A state of 256 x 16 is two tiles of 128 x 16; the baseline has four of 64 x 64,
three quarters of each masked: 32 KB of held states on the way in a multiprocessor instead of 10.

A thread of the baseline's float32 products of 32 x 32 reads three numbers from shared memory for four multiplications.
Here an H200's matrix units have three products of TF32 for one of 64 x 64, and steps of 16 tokens waste less on the 30
that a sequence has in its last chunk. AMD's matrix units take float32: four waves have a quarter of 64 x 64 each, where
they all had the same 32 x 32.
"""

import torch
import triton
import triton.language as tl

TILE = 4096


@triton.jit
def _last_state_tile(
    x_ptr,
    dt_ptr,
    decay_ptr,
    B_ptr,
    prev_ptr,
    initial_ptr,
    cu_seqlens_ptr,
    states_ptr,
    num_chunks,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    PRECISION: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(state_dim, BLOCK_N)
    tiles = tl.cdiv(head_dim, BLOCK_P) * tiles_n
    tile = tl.program_id(0) % tiles
    head = tl.program_id(0) // tiles % num_heads
    seq = tl.program_id(0) // tiles // num_heads
    begin = tl.load(cu_seqlens_ptr + seq)
    end = tl.load(cu_seqlens_ptr + seq + 1)
    group = head // (num_heads // num_groups)
    p = tile // tiles_n * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (p < head_dim)[:, None] & (n < state_dim)[None, :]
    places = p[:, None] * state_dim + n[None, :]
    own = (seq * num_heads + head) * head_dim * state_dim

    # An empty sequence takes the way of one that begins where its last chunk does, with nothing to add.
    chunk = tl.maximum(end - 1, 0) // chunk_size
    base = tl.where(begin == end, begin, chunk * chunk_size)
    steps = (head * num_chunks + chunk) * chunk_size - base
    before_ptr = prev_ptr + (chunk * num_heads + head) * head_dim * state_dim
    held_ptr = initial_ptr + own
    if begin < base:
        held_ptr = before_ptr
    # On its way during the products, and added to them.
    held = tl.load(held_ptr + places, mask=mask, other=0.0)
    last = tl.load(decay_ptr + steps + end - 1, mask=begin < end, other=0.0)
    since = tl.load(decay_ptr + steps + begin - 1, mask=begin > base, other=0.0)

    acc = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(tl.maximum(begin, base), end, BLOCK_K):
        t = start + tl.arange(0, BLOCK_K)
        inside = t < end
        decay = tl.load(decay_ptr + steps + t, mask=inside, other=0.0)
        scale = tl.load(dt_ptr + steps + t, mask=inside, other=0.0) * tl.exp(last - decay)
        x_rows = ((t * num_heads + head) * head_dim)[:, None]
        x = tl.load(x_ptr + x_rows + p[None, :], mask=inside[:, None] & (p < head_dim)[None, :], other=0.0)
        B_rows = ((t * num_groups + group) * state_dim)[:, None]
        B = tl.load(B_ptr + B_rows + n[None, :], mask=inside[:, None] & (n < state_dim)[None, :], other=0.0)
        scaled = (x.to(tl.float32) * scale[:, None]).to(B.dtype)
        # Never true: a use of the sum outside of products makes Triton wait for them in every step.
        if start < 0:
            acc = -acc
        acc = tl.dot(tl.trans(scaled), B, acc, input_precision=PRECISION)
    acc += held.to(tl.float32) * tl.exp(last - since)
    tl.store(states_ptr + own + places, acc.to(states_ptr.dtype.element_ty), mask=mask)


def _fitting(size: int, most: int) -> int:
    return max(16, min(most, triton.next_power_of_2(size)))


def ssd_chunk_state_varlen(x, dt, dA_cumsum, B, prev_states, initial_states, cu_seqlens, states):
    num_seqs, num_heads, head_dim, state_dim = states.shape
    num_chunks, chunk_size = dt.shape[1:]
    wide = x.element_size() == 4
    block_n = _fitting(state_dim, 64)
    block_p = _fitting(head_dim, min(128, TILE // block_n))
    block_k = _fitting(x.shape[0] // num_seqs, 16 if wide else 32)
    tiles = triton.cdiv(head_dim, block_p) * triton.cdiv(state_dim, block_n)
    _last_state_tile[(num_seqs * num_heads * tiles,)](
        x,
        dt,
        dA_cumsum,
        B,
        prev_states,
        initial_states,
        cu_seqlens,
        states,
        num_chunks,
        num_heads,
        B.shape[1],
        head_dim,
        state_dim,
        chunk_size,
        # AMD's matrix units take float32, NVIDIA's three products of TF32 for one of float32.
        PRECISION="tf32x3" if wide and not torch.version.hip else "ieee",
        BLOCK_P=block_p,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_stages=2 if torch.version.hip else 3,
    )
