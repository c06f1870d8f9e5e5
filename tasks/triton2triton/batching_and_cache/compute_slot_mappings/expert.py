"""Slots of tokens, a token a thread: every token finds its request by bisection of the offsets.

The baseline walks along a request in one program, for as long as the longest request takes. A bisection of 4096 offsets
takes 12 loads, which the first-level cache serves after a few tokens. The block size is a constant: no divisions.
"""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def _map_tokens(
    positions_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    slot_mapping_ptr,
    num_reqs,
    padded_tokens,
    max_blocks,
    BLOCK_SIZE: tl.constexpr,
    STEPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    t = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    # The last offset that is not above t: that of t's request, or num_reqs for padding.
    request = tl.zeros((WIDTH,), tl.int32)
    for step in tl.static_range(STEPS):
        probe = request + (1 << (STEPS - 1 - step))
        offset = tl.load(cu_seqlens_ptr + probe, mask=probe <= num_reqs, other=2147483647)
        request = tl.where(offset <= t, probe, request)
    real = (request < num_reqs) & (t < padded_tokens)
    position = tl.load(positions_ptr + t, mask=real, other=0).to(tl.int32)
    row = tl.load(idx_mapping_ptr + request, mask=real, other=0).to(tl.int64) * max_blocks
    block = tl.load(block_table_ptr + row + position // BLOCK_SIZE, mask=real, other=0).to(tl.int64)
    slot = tl.where(real, block * BLOCK_SIZE + position % BLOCK_SIZE, -1)
    tl.store(slot_mapping_ptr + t, slot, mask=t < padded_tokens)


def compute_slot_mappings(positions, block_table, cu_seqlens, idx_mapping, block_size, slot_mapping):
    num_reqs = idx_mapping.numel()
    padded_tokens = slot_mapping.numel()
    _map_tokens[(triton.cdiv(padded_tokens, TILE),)](
        positions,
        block_table,
        cu_seqlens,
        idx_mapping,
        slot_mapping,
        num_reqs,
        padded_tokens,
        block_table.shape[1],
        BLOCK_SIZE=block_size,
        STEPS=num_reqs.bit_length(),
        WIDTH=TILE,
    )
