"""Cache indices of chosen tokens in tiles of 2048: each thread of four warps has four vectors of positions on the way.

The block size is a constant of the program, so that its quotients are shifts or products instead of divisions.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _convert_tile(
    token_indices_ptr,
    block_table_ptr,
    req_ids_ptr,
    out_ptr,
    num_tokens,
    top_k,
    max_blocks,
    BLOCK_SIZE: tl.constexpr,
    TOKENS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    strips = tl.cdiv(top_k, WIDTH)
    tokens = (tl.program_id(0) // strips).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    real = tokens < num_tokens
    k = tl.program_id(0) % strips * WIDTH + tl.arange(0, WIDTH)
    inside = real[:, None] & (k < top_k)[None, :]
    places = tokens[:, None] * top_k + k[None, :]
    tables = tl.load(req_ids_ptr + tokens, mask=real, other=0).to(tl.int64) * max_blocks
    position = tl.load(token_indices_ptr + places, mask=inside, other=-1)
    column = position // BLOCK_SIZE
    valid = (position >= 0) & (column < max_blocks)
    block = tl.load(block_table_ptr + tables[:, None] + column, mask=valid, other=0)
    tl.store(out_ptr + places, tl.where(valid, block * BLOCK_SIZE + position % BLOCK_SIZE, -1), mask=inside)


def convert_req_to_global_index(token_indices, block_table, req_ids, block_size, out):
    num_tokens, top_k = token_indices.shape
    width = min(triton.next_power_of_2(top_k), TILE_ELEMENTS)
    # Several tokens a program where each has few positions.
    tokens = TILE_ELEMENTS // width
    _convert_tile[(triton.cdiv(num_tokens, tokens) * triton.cdiv(top_k, width),)](
        token_indices,
        block_table,
        req_ids,
        out,
        num_tokens,
        top_k,
        block_table.shape[1],
        BLOCK_SIZE=block_size,
        TOKENS=tokens,
        WIDTH=width,
    )
