"""Staged writes in wide tiles on a grid over writes and tiles; tiles past the end of a write return at once."""

import triton
import triton.language as tl

TILE = 2048


@triton.jit
def write_tile(contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, row_length, WIDTH: tl.constexpr):
    write = tl.program_id(0)
    begin = tl.load(cu_lens_ptr + write)
    length = tl.load(cu_lens_ptr + write + 1) - begin
    first = tl.program_id(1) * WIDTH
    if first < length:
        i = first + tl.arange(0, WIDTH)
        target = tl.load(rows_ptr + write).to(tl.int64) * row_length + tl.load(starts_ptr + write)
        values = tl.load(contents_ptr + begin + i, mask=i < length)
        tl.store(state_ptr + target + i, values, mask=i < length)


def apply_write(contents, rows, starts, cu_lens, state):
    num_writes = rows.numel()
    most = contents.numel() // num_writes
    width = min(TILE, max(128, triton.next_power_of_2(most)))
    write_tile[(num_writes, triton.cdiv(most, width))](
        contents, rows, starts, cu_lens, state, state.shape[1], WIDTH=width
    )
