"""expect: wrong_result in heldout-10. Size limit: the loop over tiles is left out, and of a longer write the rest is lost."""

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
    i = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(contents_ptr + begin + i, mask=i < length)
    tl.store(state_ptr + target + i, values, mask=i < length)


def apply_write(contents, rows, starts, cu_lens, state):
    write_part[(rows.numel(), PARTS)](
        contents, rows, starts, cu_lens, state, state.shape[1], WIDTH=TILE, PARTS=PARTS, num_warps=8
    )
