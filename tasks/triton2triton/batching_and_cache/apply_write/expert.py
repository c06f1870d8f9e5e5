"""Staged writes in as many programs as a GPU runs at once: few writes have many programs each, and many writes few.

The baseline has two programs for a write, so that 64 writes leave multiprocessors idle. A program for every tile of the
longest write would mostly find nothing to do, as lengths differ. Here the programs of a write take turns at its tiles.
"""

import triton
import triton.language as tl

TILE = 2048
PROGRAMS = 2048  # of 128 threads: an H200 has room for 2112


@triton.jit
def write_tiles(
    contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, row_length, WIDTH: tl.constexpr, PARTS: tl.constexpr
):
    write = tl.program_id(0)
    # All loads are under way before the first of their values is used.
    begin = tl.load(cu_lens_ptr + write)
    end = tl.load(cu_lens_ptr + write + 1)
    row = tl.load(rows_ptr + write).to(tl.int64)
    start = tl.load(starts_ptr + write)
    contents = contents_ptr + begin
    target = state_ptr + row * row_length + start
    length = end - begin
    for first in range(tl.program_id(1) * WIDTH, length, PARTS * WIDTH):
        i = first + tl.arange(0, WIDTH)
        tl.store(target + i, tl.load(contents + i, mask=i < length), mask=i < length)


def apply_write(contents, rows, starts, cu_lens, state):
    num_writes = rows.numel()
    most = contents.numel() // num_writes
    width = min(TILE, max(128, triton.next_power_of_2(most)))
    parts = max(1, min(PROGRAMS // num_writes, triton.cdiv(most, width)))
    write_tiles[(num_writes, parts)](
        contents,
        rows,
        starts,
        cu_lens,
        state,
        state.shape[1],
        WIDTH=width,
        PARTS=parts,
    )
