"""Gathered block tables: one program per group and request, 1024 blocks at a time."""

import triton
import triton.language as tl

TILE = 1024


@triton.jit
def gather_row(
    block_tables_ptr, num_blocks_ptr, idx_mapping_ptr, gathered_ptr, num_slots, max_blocks, WIDTH: tl.constexpr
):
    request = tl.program_id(0)
    group = tl.program_id(1).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + request)
    count = tl.load(num_blocks_ptr + group * num_slots + slot)
    source = (group * num_slots + slot) * max_blocks
    target = (group * num_slots + request) * max_blocks
    for first in range(0, count, WIDTH):
        b = first + tl.arange(0, WIDTH)
        blocks = tl.load(block_tables_ptr + source + b, mask=b < count)
        tl.store(gathered_ptr + target + b, blocks, mask=b < count)


def gather_block_tables(block_tables, num_blocks, idx_mapping, gathered):
    num_groups, num_slots, max_blocks = block_tables.shape
    gather_row[(idx_mapping.numel(), num_groups)](
        block_tables, num_blocks, idx_mapping, gathered, num_slots, max_blocks, WIDTH=TILE
    )
