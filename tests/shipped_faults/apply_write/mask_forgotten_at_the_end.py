"""expect: out_of_bounds or wrong_result in seen-01. Mask at the end: a whole tile is stored however short the write is."""

import triton
import triton.language as tl

TILE = 4096
PARTS = 4  # programs of a write


@triton.jit
def write_part(
    contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, row_length, WIDTH: tl.constexpr, PARTS: tl.constexpr
):
    write = tl.program_id(0)
    begin = tl.load(cu_lens_ptr + write)
    length = tl.load(cu_lens_ptr + write + 1) - begin
    target = tl.load(rows_ptr + write).to(tl.int64) * row_length + tl.load(starts_ptr + write)
    for first in range(tl.program_id(1) * WIDTH, length, PARTS * WIDTH):
        i = first + tl.arange(0, WIDTH)
        values = tl.load(contents_ptr + begin + i, mask=i < length)
        tl.store(state_ptr + target + i, values)


def apply_write(contents, rows, starts, cu_lens, state):
    write_part[(rows.numel(), PARTS)](
        contents, rows, starts, cu_lens, state, state.shape[1], WIDTH=TILE, PARTS=PARTS, num_warps=8
    )
