"""States before every chunk: one program per head and block of state elements, which walks the chunks."""

import triton
import triton.language as tl


@triton.jit
def walk_chunks(
    slopes_ptr, kv_ptr, state_ptr, seq_len, num_heads, num_chunks, chunk_size, state_size, BLOCK: tl.constexpr
):
    index = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < state_size
    slope = tl.load(slopes_ptr + index % num_heads)
    state = tl.load(state_ptr + index * state_size + i, mask=inside)
    for chunk in range(num_chunks):
        place = kv_ptr + (index * num_chunks + chunk) * state_size + i
        add = tl.load(place, mask=inside)
        tl.store(place, state, mask=inside)
        tokens = tl.minimum(seq_len - chunk * chunk_size, chunk_size)
        state = tl.exp(-slope * tokens) * state + add
    tl.store(state_ptr + index * state_size + i, state, mask=inside)


def lightning_attn_kv_reduce(slopes, kv, state, seq_len, chunk_size):
    batch, num_heads, num_chunks, head_dim, value_dim = kv.shape
    state_size = head_dim * value_dim
    grid = (batch * num_heads, triton.cdiv(state_size, 512))
    walk_chunks[grid](slopes, kv, state, seq_len, num_heads, num_chunks, chunk_size, state_size, BLOCK=512)
