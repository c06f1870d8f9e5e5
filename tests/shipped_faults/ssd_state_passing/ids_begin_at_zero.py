"""expect: wrong_result in heldout-29. Assumed value: the id before the first chunk is 0."""

import triton
import triton.language as tl


@triton.jit
def pass_block(
    states_ptr,
    decay_ptr,
    initial_ptr,
    seq_idx_ptr,
    prev_ptr,
    final_ptr,
    seq_len,
    num_chunks,
    state_size,
    chunk_size,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    i = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = i < state_size
    decay_row = (row * num_heads + head) * num_chunks * chunk_size
    carried = tl.zeros((BLOCK,), tl.float32)
    if initial_ptr is not None:
        initial_row = (row * num_heads + head) * state_size
        carried = tl.load(initial_ptr + initial_row + i, mask=inside, other=0.0).to(tl.float32)
    sequence = 0
    for chunk in range(num_chunks):
        place = ((row * num_chunks + chunk) * num_heads + head) * state_size + i
        tl.store(prev_ptr + place, carried.to(prev_ptr.dtype.element_ty), mask=inside)
        kept = tl.exp(tl.load(decay_ptr + decay_row + chunk * chunk_size + chunk_size - 1))
        if seq_idx_ptr is not None:
            last = tl.minimum((chunk + 1) * chunk_size, seq_len) - 1
            current = tl.load(seq_idx_ptr + row * seq_len + last)
            kept = tl.where(current == sequence, kept, 0.0)
            sequence = current
        added = tl.load(states_ptr + place, mask=inside, other=0.0).to(tl.float32)
        carried = kept * carried + added
    final_row = (row * num_heads + head) * state_size
    tl.store(final_ptr + final_row + i, carried.to(final_ptr.dtype.element_ty), mask=inside)


def ssd_state_passing(states, dA_cumsum, initial_states, seq_idx, prev_states, final_states):
    batch, num_chunks, num_heads, head_dim, state_dim = states.shape
    seq_len = 0 if seq_idx is None else seq_idx.shape[1]
    size = head_dim * state_dim
    pass_block[(batch, num_heads, triton.cdiv(size, 128))](
        states,
        dA_cumsum,
        initial_states,
        seq_idx,
        prev_states,
        final_states,
        seq_len,
        num_chunks,
        size,
        dA_cumsum.shape[3],
        BLOCK=128,
        num_warps=1,
    )
