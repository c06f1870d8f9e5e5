"""expect: wrong_result in heldout-10. Overflow: a slot is computed in 32 bits and widened afterwards.

Slots of tokens: one program per request, which walks over its tokens; the one after the last pads the rest.
"""

import triton
import triton.language as tl

TILE = 256


@triton.jit
def map_request(
    positions_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    block_size,
    slot_mapping_ptr,
    num_reqs,
    padded_tokens,
    max_blocks,
    WIDTH: tl.constexpr,
):
    request = tl.program_id(0)
    begin = tl.load(cu_seqlens_ptr + request)
    if request == num_reqs:
        for first in range(begin, padded_tokens, WIDTH):
            t = first + tl.arange(0, WIDTH)
            tl.store(slot_mapping_ptr + t, tl.full((WIDTH,), -1, tl.int64), mask=t < padded_tokens)
    else:
        end = tl.load(cu_seqlens_ptr + request + 1)
        row = tl.load(idx_mapping_ptr + request).to(tl.int64) * max_blocks
        for first in range(begin, end, WIDTH):
            t = first + tl.arange(0, WIDTH)
            position = tl.load(positions_ptr + t, mask=t < end, other=0)
            block = tl.load(block_table_ptr + row + position // block_size, mask=t < end, other=0)
            slot = block * block_size + (position % block_size).to(tl.int32)
            tl.store(slot_mapping_ptr + t, slot.to(tl.int64), mask=t < end)


def compute_slot_mappings(positions, block_table, cu_seqlens, idx_mapping, block_size, slot_mapping):
    num_reqs = idx_mapping.numel()
    map_request[(num_reqs + 1,)](
        positions,
        block_table,
        cu_seqlens,
        idx_mapping,
        block_size,
        slot_mapping,
        num_reqs,
        slot_mapping.numel(),
        block_table.shape[1],
        WIDTH=TILE,
    )
