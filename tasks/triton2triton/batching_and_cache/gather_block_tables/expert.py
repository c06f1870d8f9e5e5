"""Gathered block tables by vectors of 16 bytes, on a grid over rows and tiles of 2048 blocks.

The baseline's program walks along a row 1024 blocks at a time, up to 64 steps that each wait for memory. Its mask
follows the row's length, element by element, so that a block is an access of 4 bytes: 8 a thread in flight. Here the
mask is one bit for four blocks, which one access of 16 bytes moves, and a thread has four such accesses in flight. The
last one to three blocks of a row are loaded beside its last tile. Tiles past the end of their row return at once.
"""

import triton
import triton.language as tl

TILE = 2048


@triton.jit
def _gather_tile(
    block_tables_ptr,
    num_blocks_ptr,
    idx_mapping_ptr,
    gathered_ptr,
    num_reqs,
    num_slots,
    max_blocks,
    strips,
    WIDTH: tl.constexpr,
):
    row = tl.program_id(0) // strips
    request = row % num_reqs
    first_row = (row // num_reqs).to(tl.int64) * num_slots
    slot = tl.load(idx_mapping_ptr + request)
    count = tl.load(num_blocks_ptr + first_row + slot)
    first = tl.program_id(0) % strips * WIDTH
    if first < count:
        source_ptr = block_tables_ptr + (first_row + slot) * max_blocks
        target_ptr = gathered_ptr + (first_row + request) * max_blocks
        starts = first + tl.arange(0, WIDTH // 4)[:, None] * 4
        b = starts + tl.arange(0, 4)[None, :]
        whole = tl.broadcast_to(starts + 4 <= count, (WIDTH // 4, 4))
        blocks = tl.load(source_ptr + b, mask=whole)
        rest = count // 4 * 4 + tl.arange(0, 4)
        in_rest = (rest >= first) & (rest < first + WIDTH) & (rest < count)
        last_blocks = tl.load(source_ptr + rest, mask=in_rest)
        tl.store(target_ptr + b, blocks, mask=whole)
        tl.store(target_ptr + rest, last_blocks, mask=in_rest)


def gather_block_tables(block_tables, num_blocks, idx_mapping, gathered):
    num_groups, num_slots, max_blocks = block_tables.shape
    num_reqs = idx_mapping.numel()
    width = min(TILE, max(128, triton.next_power_of_2(max_blocks)))
    strips = triton.cdiv(max_blocks, width)
    _gather_tile[(num_groups * num_reqs * strips,)](
        block_tables,
        num_blocks,
        idx_mapping,
        gathered,
        num_reqs,
        num_slots,
        max_blocks,
        strips,
        WIDTH=width,
        # Sixteen blocks a thread of 32 lanes: four vectors.
        num_warps=max(1, width // 512),
    )
