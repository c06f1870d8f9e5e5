"""Last states of ragged sequences: one program per sequence, head and tile of the state."""

import triton
import triton.language as tl


@triton.jit
def last_state_tile(
    x_ptr,
    dt_ptr,
    decay_ptr,
    B_ptr,
    prev_ptr,
    initial_ptr,
    cu_seqlens_ptr,
    states_ptr,
    num_chunks,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    num_heads = tl.num_programs(1)
    group = head // (num_heads // num_groups)
    tiles_n = tl.cdiv(state_dim, BLOCK_N)
    p = tl.program_id(2) // tiles_n * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tl.program_id(2) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (p < head_dim)[:, None] & (n < state_dim)[None, :]
    tile = p[:, None] * state_dim + n[None, :]
    state_size = head_dim * state_dim
    own = (seq * num_heads + head) * state_size + tile

    begin = tl.load(cu_seqlens_ptr + seq)
    end = tl.load(cu_seqlens_ptr + seq + 1)
    # An empty sequence takes the way of one that begins where its last chunk does, with nothing to add.
    chunk = tl.maximum(end - 1, 0) // chunk_size
    base = tl.where(begin == end, begin, chunk * chunk_size)
    steps = (head * num_chunks + chunk) * chunk_size
    last = tl.load(decay_ptr + steps + end - 1 - base, mask=begin < end, other=0.0)
    if begin < base:
        held = tl.load(prev_ptr + (chunk * num_heads + head) * state_size + tile, mask=mask, other=0.0)
        acc = held.to(tl.float32) * tl.exp(last)
    else:
        since = tl.load(decay_ptr + steps + begin - base - 1, mask=begin > base, other=0.0)
        held = tl.load(initial_ptr + own, mask=mask, other=0.0)
        acc = held.to(tl.float32) * tl.exp(last - since)

    for start in range(tl.maximum(begin, base), end, BLOCK_K):
        t = start + tl.arange(0, BLOCK_K)
        inside = t < end
        decay = tl.load(decay_ptr + steps + t - base, mask=inside, other=0.0)
        weights = tl.load(dt_ptr + steps + t - base, mask=inside, other=0.0) * tl.exp(last - decay)
        x_rows = (t.to(tl.int64) * num_heads + head) * head_dim
        x_mask = (p < head_dim)[:, None] & inside[None, :]
        x = tl.load(x_ptr + x_rows[None, :] + p[:, None], mask=x_mask, other=0.0)
        B_rows = (t.to(tl.int64) * num_groups + group) * state_dim
        B_mask = inside[:, None] & (n < state_dim)[None, :]
        B = tl.load(B_ptr + B_rows[:, None] + n[None, :], mask=B_mask, other=0.0)
        acc += tl.dot((x * weights[None, :]).to(B.dtype), B, input_precision="ieee")
    tl.store(states_ptr + own, acc.to(states_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_state_varlen(x, dt, dA_cumsum, B, prev_states, initial_states, cu_seqlens, states):
    num_seqs, num_heads, head_dim, state_dim = states.shape
    num_chunks, chunk_size = dt.shape[1:]
    # float32 operands take twice the memory, and their products no matrix units.
    block = 32 if x.element_size() == 4 else 64
    tiles = triton.cdiv(head_dim, block) * triton.cdiv(state_dim, block)
    last_state_tile[(num_seqs, num_heads, tiles)](
        x,
        dt,
        dA_cumsum,
        B,
        prev_states,
        initial_states,
        cu_seqlens,
        states,
        num_chunks,
        B.shape[1],
        head_dim,
        state_dim,
        chunk_size,
        BLOCK_P=block,
        BLOCK_N=block,
        BLOCK_K=32,
    )
