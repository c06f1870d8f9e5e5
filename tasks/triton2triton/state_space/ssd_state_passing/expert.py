"""Mamba-2 state passing: the chunks are loaded in groups, so that a warp waits once per group and not once per chunk.

In the baseline the store of a chunk waits for the load of the chunk before it. A warp has one load of 128 values in
flight: 256 bytes at 16 bits, thus 8 KB with the 32 programs that an SM of an H200 holds. 4.8 TB/s at a latency of
700 ns need 25 KB an SM. The expert loads 256 values of 4 KB worth of chunks (8 at 16 bits, 4 at 32 bits) and their
decays before it computes and stores. With the 19 programs an SM of the smallest production case that is 76 KB. Threads
of NVIDIA move 16 bytes a load in place of 8. 188 chunks of a tiny state take 24 waits in place of 188. Of seq_idx, one
id a chunk is read: the last token of the chunk before is known. Chunks past the end are masked; there the state stays.
"""

import triton
import triton.language as tl


@triton.jit
def _pass_groups(
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
    GROUP: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    i = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = i < state_size
    line = row * num_heads + head
    decay_ptr += line * num_chunks * chunk_size + chunk_size - 1
    carried = tl.zeros((BLOCK,), tl.float32)
    if initial_ptr is not None:
        carried = tl.load(initial_ptr + line * state_size + i, mask=inside, other=0.0).to(tl.float32)
    last_id = 0
    if seq_idx_ptr is not None:
        seq_idx_ptr += row * seq_len
        last_id = tl.load(seq_idx_ptr)
    for start in range(0, num_chunks, GROUP):
        added = ()
        decays = ()
        ids = ()
        for step in tl.static_range(GROUP):
            chunk = start + step
            real = chunk < num_chunks
            place = ((row * num_chunks + chunk) * num_heads + head) * state_size + i
            added += (tl.load(states_ptr + place, mask=inside & real, other=0.0),)
            decays += (tl.load(decay_ptr + chunk * chunk_size, mask=real, other=0.0),)
            if seq_idx_ptr is not None:
                last = tl.minimum((chunk + 1) * chunk_size, seq_len) - 1
                ids += (tl.load(seq_idx_ptr + last, mask=real, other=0),)
        for step in tl.static_range(GROUP):
            real = start + step < num_chunks
            place = ((row * num_chunks + start + step) * num_heads + head) * state_size + i
            tl.store(prev_ptr + place, carried.to(prev_ptr.dtype.element_ty), mask=inside & real)
            kept = tl.exp(decays[step])
            if seq_idx_ptr is not None:
                kept = tl.where(real & (ids[step] != last_id), 0.0, kept)
                last_id = ids[step]
            carried = kept * carried + added[step].to(tl.float32)
    tl.store(final_ptr + line * state_size + i, carried.to(final_ptr.dtype.element_ty), mask=inside)


def ssd_state_passing(states, dA_cumsum, initial_states, seq_idx, prev_states, final_states):
    batch, num_chunks, num_heads, head_dim, state_dim = states.shape
    size = head_dim * state_dim
    block = min(256, triton.next_power_of_2(size))
    _pass_groups[(batch, num_heads, triton.cdiv(size, block))](
        states,
        dA_cumsum,
        initial_states,
        seq_idx,
        prev_states,
        final_states,
        0 if seq_idx is None else seq_idx.shape[1],
        num_chunks,
        size,
        dA_cumsum.shape[3],
        BLOCK=block,
        GROUP=16 // states.element_size(),
        num_warps=1,
    )
