"""Cache indices of chosen tokens: one program per token and 128 of its positions."""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def convert_tile(
    token_indices_ptr, block_table_ptr, req_ids_ptr, block_size, out_ptr, top_k, max_blocks, WIDTH: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    request = tl.load(req_ids_ptr + token).to(tl.int64)
    position = tl.load(token_indices_ptr + token * top_k + k, mask=k < top_k, other=-1)
    column = position // block_size
    valid = (position >= 0) & (column < max_blocks)
    block = tl.load(block_table_ptr + request * max_blocks + column, mask=valid, other=0)
    place = tl.where(valid, block * block_size + position % block_size, -1)
    tl.store(out_ptr + token * top_k + k, place, mask=k < top_k)


def convert_req_to_global_index(token_indices, block_table, req_ids, block_size, out):
    num_tokens, top_k = token_indices.shape
    convert_tile[(num_tokens, triton.cdiv(top_k, TILE))](
        token_indices, block_table, req_ids, block_size, out, top_k, block_table.shape[1], WIDTH=TILE
    )
