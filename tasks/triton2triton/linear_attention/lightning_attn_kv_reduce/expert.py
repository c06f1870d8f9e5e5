"""States before every chunk, with four chunks on their way at once.

Only the state depends on the chunk before: what chunks add does not. The baseline loads it for one chunk, stores, and
waits for the next; here a program loads it for four chunks before it stores the first.
"""

import triton
import triton.language as tl


@triton.jit
def _step(state, add, place, slope, seq_len, chunk, chunk_size, inside):
    """Store the state before a chunk; return that after it. Past the last chunk nothing is added or stored."""
    tokens = tl.minimum(seq_len - chunk * chunk_size, chunk_size)
    tl.store(place, state, mask=inside & (tokens > 0))
    return tl.exp(-slope * tl.maximum(tokens, 0)) * state + add


@triton.jit
def _walk_chunks(
    slopes_ptr, kv_ptr, state_ptr, seq_len, num_heads, num_chunks, chunk_size, state_size, BLOCK: tl.constexpr
):
    index = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < state_size
    slope = tl.load(slopes_ptr + index % num_heads)
    state = tl.load(state_ptr + index * state_size + i, mask=inside)
    for chunk in range(0, num_chunks, 4):
        place = kv_ptr + (index * num_chunks + chunk) * state_size + i
        add0 = tl.load(place, mask=inside, other=0.0)
        add1 = tl.load(place + state_size, mask=inside & (chunk + 1 < num_chunks), other=0.0)
        add2 = tl.load(place + 2 * state_size, mask=inside & (chunk + 2 < num_chunks), other=0.0)
        add3 = tl.load(place + 3 * state_size, mask=inside & (chunk + 3 < num_chunks), other=0.0)
        state = _step(state, add0, place, slope, seq_len, chunk, chunk_size, inside)
        state = _step(state, add1, place + state_size, slope, seq_len, chunk + 1, chunk_size, inside)
        state = _step(state, add2, place + 2 * state_size, slope, seq_len, chunk + 2, chunk_size, inside)
        state = _step(state, add3, place + 3 * state_size, slope, seq_len, chunk + 3, chunk_size, inside)
    tl.store(state_ptr + index * state_size + i, state, mask=inside)


def lightning_attn_kv_reduce(slopes, kv, state, seq_len, chunk_size):
    batch, num_heads, num_chunks, head_dim, value_dim = kv.shape
    state_size = head_dim * value_dim
    grid = (batch * num_heads, triton.cdiv(state_size, 512))
    _walk_chunks[grid](slopes, kv, state, seq_len, num_heads, num_chunks, chunk_size, state_size, BLOCK=512)
