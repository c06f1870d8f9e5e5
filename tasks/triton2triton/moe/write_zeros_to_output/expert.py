"""Zeros for experts elsewhere in runs of 2 KB of 16 rows, with neighbouring tiles of a row in neighbouring programs.

Of a block of 128 choices the baseline's programs clear 64 columns each: 128 bytes of a row in 16-bit numbers. What
lies beside them belongs to a program that starts after all blocks had their first columns. A row of 4096 columns takes
64 programs, each of which reads the block's expert and choices again.

Here a program clears 16 rows of a tile of 2 KB, so that a thread stores 16 vectors of 16 bytes, or eight where warps
have 64 lanes. The row of 4096 columns takes four tiles, whose programs follow one another.
"""

import triton
import triton.language as tl

ROWS = 16
TILE_BYTES = 2048


@triton.jit
def _zero_rows(
    out_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    num_choices,
    N,
    row_stride,
    BLOCK_M: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    tiles = tl.cdiv(N, TILE)
    first = tl.program_id(0) // tiles * ROWS
    in_use = first < tl.load(rows_in_use_ptr)
    if in_use & (tl.load(expert_ids_ptr + first // BLOCK_M) == -1):
        choices = tl.load(sorted_ids_ptr + first + tl.arange(0, ROWS)).to(tl.int64)
        columns = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
        inside = (choices < num_choices)[:, None] & (columns < N)[None, :]
        zeros = tl.zeros((ROWS, TILE), out_ptr.dtype.element_ty)
        tl.store(out_ptr + choices[:, None] * row_stride + columns[None, :], zeros, mask=inside)


def write_zeros_to_output(out, sorted_token_ids, expert_ids, num_tokens_post_padded):
    choices, N = out.shape
    tile = min(triton.next_power_of_2(N), TILE_BYTES // out.element_size())
    # A block has 16, 32, 64 or 128 rows.
    groups = sorted_token_ids.numel() // ROWS
    _zero_rows[(groups * triton.cdiv(N, tile),)](
        out,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        choices,
        N,
        out.stride(0),
        BLOCK_M=sorted_token_ids.numel() // expert_ids.numel(),
        ROWS=ROWS,
        TILE=tile,
    )
