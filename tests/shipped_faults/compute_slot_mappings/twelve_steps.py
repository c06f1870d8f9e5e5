"""expect: wrong_result in heldout-13. Limit: twelve steps of a binary search."""

import triton
import triton.language as tl

TILE = 128
STEPS = 12  # for 4096 requests


@triton.jit
def map_tokens(
    positions_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    block_size,
    slot_mapping_ptr,
    num_reqs,
    padded_tokens,
    max_blocks,
    STEPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    t = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    inside = t < tl.load(cu_seqlens_ptr + num_reqs)
    lower = tl.zeros((WIDTH,), tl.int32)
    upper = tl.zeros((WIDTH,), tl.int32) + num_reqs
    for _ in range(STEPS):
        middle = (lower + upper) // 2
        searching = lower < upper
        after = tl.load(cu_seqlens_ptr + middle + 1, mask=searching, other=0) > t
        upper = tl.where(searching & after, middle, upper)
        lower = tl.where(searching & (after == 0), middle + 1, lower)
    row = tl.load(idx_mapping_ptr + lower, mask=inside, other=0).to(tl.int64) * max_blocks
    position = tl.load(positions_ptr + t, mask=inside, other=0)
    block = tl.load(block_table_ptr + row + position // block_size, mask=inside, other=0)
    slot = block.to(tl.int64) * block_size + position % block_size
    tl.store(slot_mapping_ptr + t, tl.where(inside, slot, -1), mask=t < padded_tokens)


def compute_slot_mappings(positions, block_table, cu_seqlens, idx_mapping, block_size, slot_mapping):
    padded_tokens = slot_mapping.numel()
    map_tokens[(triton.cdiv(padded_tokens, TILE),)](
        positions,
        block_table,
        cu_seqlens,
        idx_mapping,
        block_size,
        slot_mapping,
        idx_mapping.numel(),
        padded_tokens,
        block_table.shape[1],
        STEPS=STEPS,
        WIDTH=TILE,
    )
