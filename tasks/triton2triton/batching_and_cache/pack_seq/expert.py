"""Padded sequences in tiles of several places and a wide run of elements; the places of a tile share a sequence."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def pack_tile(x_ptr, cu_seqlens_ptr, padding, out_ptr, max_len, hidden, PLACES: tl.constexpr, WIDTH: tl.constexpr):
    tiles = tl.cdiv(max_len, PLACES)
    sequence = (tl.program_id(0) // tiles).to(tl.int64)
    places = tl.program_id(0) % tiles * PLACES + tl.arange(0, PLACES)
    i = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    begin = tl.load(cu_seqlens_ptr + sequence)
    length = tl.load(cu_seqlens_ptr + sequence + 1) - begin
    inside = (places < max_len)[:, None] & (i < hidden)[None, :]
    tokens = (begin + places).to(tl.int64)
    present = (places < length)[:, None]
    values = tl.load(x_ptr + tokens[:, None] * hidden + i[None, :], mask=inside & present, other=0.0)
    filler = tl.full((PLACES, WIDTH), padding, tl.float32).to(out_ptr.dtype.element_ty)
    targets = (sequence * max_len + places)[:, None] * hidden + i[None, :]
    tl.store(out_ptr + targets, tl.where(present, values, filler), mask=inside)


def pack_seq(x, cu_seqlens, padding, out):
    num_seqs, max_len, hidden = out.shape
    width = min(1024, triton.next_power_of_2(hidden))
    places = max(1, min(TILE_ELEMENTS // width, triton.next_power_of_2(max_len)))
    grid = (num_seqs * triton.cdiv(max_len, places), triton.cdiv(hidden, width))
    pack_tile[grid](x, cu_seqlens, padding, out, max_len, hidden, PLACES=places, WIDTH=width)
