"""Slots of tokens: a few programs for each request, with no branch and the block size a constant.

The baseline loads where a request ends only after a branch on where it begins, and one program walks along the whole
request, 128 tokens a step. Here offsets and slot are on their way together, before the load that depends on them, and
fewer than 512 requests share 512 programs. A constant block size needs no division.
"""

import triton
import triton.language as tl

TILE = 128
PROGRAMS = 512


@triton.jit
def _map_strips(
    positions_ptr,
    block_table_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    slot_mapping_ptr,
    num_reqs,
    padded_tokens,
    max_blocks,
    BLOCK_SIZE: tl.constexpr,
    STRIPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Every so many-th strip of WIDTH tokens of one request; what follows the last request is padding."""
    request = tl.program_id(0)
    real = request < num_reqs
    begin = tl.load(cu_seqlens_ptr + request)
    end = tl.load(cu_seqlens_ptr + request + 1, mask=real, other=padded_tokens)
    row = tl.load(idx_mapping_ptr + request, mask=real, other=0).to(tl.int64) * max_blocks
    for first in range(begin + tl.program_id(1) * WIDTH, end, STRIPS * WIDTH):
        t = first + tl.arange(0, WIDTH)
        mapped = (t < end) & real
        position = tl.load(positions_ptr + t, mask=mapped, other=0).to(tl.int32)
        block = tl.load(block_table_ptr + row + position // BLOCK_SIZE, mask=mapped, other=0).to(tl.int64)
        slot = tl.where(real, block * BLOCK_SIZE + position % BLOCK_SIZE, -1)
        tl.store(slot_mapping_ptr + t, slot, mask=t < end)


def compute_slot_mappings(positions, block_table, cu_seqlens, idx_mapping, block_size, slot_mapping):
    num_reqs, padded_tokens = idx_mapping.numel(), slot_mapping.numel()
    useful = min(triton.cdiv(padded_tokens, TILE), PROGRAMS // (num_reqs + 1))
    strips = 1 << max(1, useful).bit_length() - 1  # a power of two: few kernels to compile
    _map_strips[(num_reqs + 1, strips)](
        positions,
        block_table,
        cu_seqlens,
        idx_mapping,
        slot_mapping,
        num_reqs,
        padded_tokens,
        block_table.shape[1],
        BLOCK_SIZE=block_size,
        STRIPS=strips,
        WIDTH=TILE,
    )
