"""Staged writes in tiles of 4096 elements, one for a program: whatever its write, a program waits for memory twice.

The baseline has four programs for a write, each of which loads a tile and stores it before it loads the next one. Where
writes are few, that leaves multiprocessors idle; where they are many, long writes keep some busy after all others.
Programs past the end of their write come last and end at once.
"""

import triton
import triton.language as tl

TILE = 4096


@triton.jit
def write_tile(contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, row_length, WIDTH: tl.constexpr):
    write = tl.program_id(0)
    # All loads are under way before the first of their values is used.
    begin = tl.load(cu_lens_ptr + write)
    end = tl.load(cu_lens_ptr + write + 1)
    row = tl.load(rows_ptr + write).to(tl.int64)
    start = tl.load(starts_ptr + write)
    first = tl.program_id(1) * WIDTH
    if first < end - begin:
        i = first + tl.arange(0, WIDTH)
        inside = i < end - begin
        values = tl.load(contents_ptr + begin + i, mask=inside)
        tl.store(state_ptr + row * row_length + start + i, values, mask=inside)


def apply_write(contents, rows, starts, cu_lens, state):
    num_writes = rows.numel()
    most = contents.numel() // num_writes
    width = min(TILE, max(128, triton.next_power_of_2(most)))
    write_tile[(num_writes, triton.cdiv(most, width))](
        contents, rows, starts, cu_lens, state, state.shape[1], WIDTH=width, num_warps=8
    )
