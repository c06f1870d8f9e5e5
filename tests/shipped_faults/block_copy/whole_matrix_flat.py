"""expect: wrong_result in heldout-19. Row strides dropped: a window that is the whole matrix is copied flat.

Padded window copy: a 16 x 64 tile of the window a program, read through a mask that stands for the edges of x.
"""

import triton
import triton.language as tl

TILE_ROWS, TILE_COLUMNS = 16, 64


@triton.jit
def copy_tile(
    x_ptr,
    out_ptr,
    top,
    left,
    padding,
    x_stride,
    height,
    width,
    rows,
    columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    y = (i + top)[:, None]
    x = (j + left)[None, :]
    covered = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    in_window = (i < rows)[:, None] & (j < columns)[None, :]
    loaded = tl.load(x_ptr + y * x_stride + x, mask=covered & in_window, other=0.0)
    filler = tl.full((ROWS, COLUMNS), padding, tl.float32).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i[:, None] * columns + j[None, :], tl.where(covered, loaded, filler), mask=in_window)


@triton.jit
def copy_flat(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """All of x in its order: no edges to look for."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < count), mask=i < count)


def block_copy(x, top, left, padding, out):
    height, width = x.shape
    rows, columns = out.shape
    if top == 0 and left == 0 and (rows, columns) == (height, width):
        copy_flat[(triton.cdiv(rows * columns, 1024),)](x, out, rows * columns, BLOCK=1024)
        return
    grid = (triton.cdiv(rows, TILE_ROWS), triton.cdiv(columns, TILE_COLUMNS))
    copy_tile[grid](
        x, out, top, left, padding, x.stride(0), height, width, rows, columns, ROWS=TILE_ROWS, COLUMNS=TILE_COLUMNS
    )
