"""Scale swizzle as a transpose of words: whole rows of words come in, whole tiles of 512 bytes go out.

Four columns make a word, and a tile is 128 words, the rows in another order. Where rows are not whole words, the same
kernel moves bytes.
"""

import torch
import triton
import triton.language as tl

TILES = 32


@triton.jit
def _swizzle(scales_ptr, out_ptr, rows, width, row_stride, tiles_across, WORD: tl.constexpr, TILES: tl.constexpr):
    """TILES tiles side by side. WORD: elements of four columns, 1 for words and 4 for bytes."""
    row_tile = tl.program_id(0)
    matrix = tl.program_id(2).to(tl.int64)
    first_tile = tl.program_id(1) * TILES
    # The element at place j of a tile: the columns of a word change fastest, then 4 quarters of the rows, then 32 rows.
    place = tl.arange(0, 128 * WORD)
    source_row = place // WORD % 4 * 32 + place // (4 * WORD)
    row = row_tile * 128 + source_row
    tile = first_tile + tl.arange(0, TILES)
    column = tile[None, :] * WORD + (place % WORD)[:, None]
    inside = (row < rows)[:, None] & (column < width)
    offsets = (matrix * rows + row)[:, None] * row_stride + column
    values = tl.load(scales_ptr + offsets, mask=inside, other=0)
    out_tile = (matrix * tl.num_programs(0) + row_tile) * tiles_across + tile
    out_offsets = out_tile[None, :] * (128 * WORD) + place[:, None]
    tl.store(out_ptr + out_offsets, values, mask=(tile < tiles_across)[None, :])


def scale_swizzle(scales, out):
    batch, rows, columns = scales.shape
    whole_words = columns % 4 == 0 and scales.stride(1) % 4 == 0
    element = torch.int32 if whole_words else torch.uint8
    source, target = scales.view(element), out.view(element)
    tiles_across = triton.cdiv(columns, 4)
    word = 1 if whole_words else 4
    tiles = min(TILES // word, triton.next_power_of_2(tiles_across))
    _swizzle[(triton.cdiv(rows, 128), triton.cdiv(tiles_across, tiles), batch)](
        source,
        target,
        rows,
        source.shape[2],
        source.stride(1),
        tiles_across,
        WORD=word,
        TILES=tiles,
        num_warps=4,
    )
