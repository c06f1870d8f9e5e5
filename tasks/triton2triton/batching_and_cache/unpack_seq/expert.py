"""Flat sequences in tiles of several tokens and a wide run of elements, on a grid over tokens of the padded batch.

The baseline walks along a sequence in one program, 64 elements wide, and waits for every eight tokens. Here 4096
elements are on the way in each of four warps' programs; tiles behind the end of their sequence return at once.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _unpack_tile(padded_ptr, cu_seqlens_ptr, out_ptr, max_len, hidden, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    strips = tl.cdiv(hidden, WIDTH)
    tiles = tl.cdiv(max_len, ROWS)
    # Strips of a tile of tokens are neighbours, as they are in memory.
    i = tl.program_id(0) % strips * WIDTH + tl.arange(0, WIDTH)
    tile = tl.program_id(0) // strips
    sequence = (tile // tiles).to(tl.int64)
    first = tile % tiles * ROWS
    begin = tl.load(cu_seqlens_ptr + sequence)
    length = tl.load(cu_seqlens_ptr + sequence + 1) - begin
    if first < length:
        t = first + tl.arange(0, ROWS)
        inside = (t < length)[:, None] & (i < hidden)[None, :]
        values = tl.load(padded_ptr + (sequence * max_len + t)[:, None] * hidden + i[None, :], mask=inside)
        tl.store(out_ptr + (begin + t).to(tl.int64)[:, None] * hidden + i[None, :], values, mask=inside)


def unpack_seq(padded, cu_seqlens, out):
    num_seqs, max_len, hidden = padded.shape
    width = min(2048, triton.next_power_of_2(hidden))
    rows = max(1, min(TILE_ELEMENTS // width, triton.next_power_of_2(max_len)))
    grid = (num_seqs * triton.cdiv(max_len, rows) * triton.cdiv(hidden, width),)
    _unpack_tile[grid](padded, cu_seqlens, out, max_len, hidden, ROWS=rows, WIDTH=width)
