"""Mamba-2 chunk states: one program per chunk, head and tile of the state, which walks along the chunk's tokens."""

import triton
import triton.language as tl


@triton.jit
def chunk_state_tile(
    x_ptr,
    dt_ptr,
    decay_ptr,
    B_ptr,
    seq_idx_ptr,
    states_ptr,
    B_stride,
    seq_len,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    head = tl.program_id(1)
    group = head // (num_heads // num_groups)
    tiles_n = tl.cdiv(state_dim, BLOCK_N)
    p = tl.program_id(2) // tiles_n * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tl.program_id(2) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
    first = row * seq_len + chunk * chunk_size
    dt_row = ((row * num_heads + head) * num_chunks + chunk) * chunk_size
    total = tl.load(decay_ptr + dt_row + length - 1)

    acc = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, length, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < length
        decay = tl.load(decay_ptr + dt_row + k, mask=inside, other=0.0)
        weights = tl.load(dt_ptr + dt_row + k, mask=inside, other=0.0) * tl.exp(total - decay)
        if seq_idx_ptr is not None:
            ids = tl.load(seq_idx_ptr + first + k, mask=inside, other=-1)
            last = tl.load(seq_idx_ptr + first + length - 1)
            weights = tl.where(ids == last, weights, 0.0)
        x_rows = ((first + k) * num_heads + head) * head_dim
        x_mask = (p < head_dim)[:, None] & inside[None, :]
        x = tl.load(x_ptr + x_rows[None, :] + p[:, None], mask=x_mask, other=0.0)
        B_rows = (first + k) * B_stride + group * state_dim
        B_mask = inside[:, None] & (n < state_dim)[None, :]
        B = tl.load(B_ptr + B_rows[:, None] + n[None, :], mask=B_mask, other=0.0)
        acc += tl.dot((x * weights[None, :]).to(B.dtype), B, input_precision="ieee")

    state_row = ((row * num_chunks + chunk) * num_heads + head) * head_dim
    places = (state_row + p)[:, None] * state_dim + n[None, :]
    mask = (p < head_dim)[:, None] & (n < state_dim)[None, :]
    tl.store(states_ptr + places, acc.to(states_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_state(x, dt, dA_cumsum, B, seq_idx, states):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = B.shape[2:]
    num_chunks, chunk_size = dt.shape[2:]
    # float32 operands take twice the memory, and their products no matrix units.
    block = 32 if x.element_size() == 4 else 64
    tiles = triton.cdiv(head_dim, block) * triton.cdiv(state_dim, block)
    chunk_state_tile[(batch * num_chunks, num_heads, tiles)](
        x,
        dt,
        dA_cumsum,
        B,
        seq_idx,
        states,
        B.stride(1),
        seq_len,
        num_heads,
        num_groups,
        head_dim,
        state_dim,
        chunk_size,
        BLOCK_P=block,
        BLOCK_N=block,
        BLOCK_K=32,
    )
