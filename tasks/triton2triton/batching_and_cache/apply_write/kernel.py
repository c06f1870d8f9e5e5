"""Staged writes: one program per write, which walks over its contents 4096 elements at a time."""

import triton
import triton.language as tl

TILE = 4096


@triton.jit
def write_segment(contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, row_length, WIDTH: tl.constexpr):
    write = tl.program_id(0)
    begin = tl.load(cu_lens_ptr + write)
    length = tl.load(cu_lens_ptr + write + 1) - begin
    target = tl.load(rows_ptr + write).to(tl.int64) * row_length + tl.load(starts_ptr + write)
    for first in range(0, length, WIDTH):
        i = first + tl.arange(0, WIDTH)
        values = tl.load(contents_ptr + begin + i, mask=i < length)
        tl.store(state_ptr + target + i, values, mask=i < length)


def apply_write(contents, rows, starts, cu_lens, state):
    write_segment[(rows.numel(),)](contents, rows, starts, cu_lens, state, state.shape[1], WIDTH=TILE, num_warps=8)
