"""expect: wrong_result in heldout-16. Strides: rows are read in words of 4 bytes where the number of columns is a multiple of 4, whatever the row stride."""



import torch
import triton
import triton.language as tl


@triton.jit
def swizzle_tile(scales_ptr, out_ptr, rows, columns, row_stride, row_tiles, column_tiles, WORDS: tl.constexpr):
    tile = tl.program_id(0).to(tl.int64)
    row_tile = tile // column_tiles % row_tiles
    matrix = tile // column_tiles // row_tiles
    row = tl.arange(0, 128)[:, None]
    column = tl.arange(0, 4)[None, :]
    r = row_tile * 128 + row
    c = tile % column_tiles * 4 + column
    inside = (r < rows) & (c < columns)
    begins = (matrix * rows + r) * row_stride + c
    if WORDS:
        begins = (matrix * rows + r) * (row_stride // 4 * 4) + c
    bytes_ = tl.load(scales_ptr + begins, mask=inside, other=0)
    places = row % 32 * 16 + row // 32 * 4 + column
    tl.store(out_ptr + tile * 512 + places, bytes_)


def scale_swizzle(scales, out):
    batch, rows, columns = scales.shape
    row_tiles, column_tiles = triton.cdiv(rows, 128), triton.cdiv(columns, 4)
    swizzle_tile[(batch * row_tiles * column_tiles,)](
        scales.view(torch.uint8),
        out.view(torch.uint8),
        rows,
        columns,
        scales.stride(1),
        row_tiles,
        column_tiles,
        WORDS=columns % 4 == 0,
    )
