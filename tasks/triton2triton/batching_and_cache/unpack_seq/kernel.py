"""Flat sequences: one program per sequence and 64 elements of its tokens, eight tokens at a time."""

import triton
import triton.language as tl

TOKENS, ELEMENTS = 8, 64


@triton.jit
def unpack_sequence(padded_ptr, cu_seqlens_ptr, out_ptr, max_len, hidden, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    begin = tl.load(cu_seqlens_ptr + sequence).to(tl.int64)
    length = tl.load(cu_seqlens_ptr + sequence + 1) - begin
    for first in range(0, length, ROWS):
        t = first + tl.arange(0, ROWS)
        inside = (t < length)[:, None] & (i < hidden)[None, :]
        values = tl.load(padded_ptr + (sequence * max_len + t)[:, None] * hidden + i[None, :], mask=inside)
        tl.store(out_ptr + (begin + t)[:, None] * hidden + i[None, :], values, mask=inside)


def unpack_seq(padded, cu_seqlens, out):
    num_seqs, max_len, hidden = padded.shape
    unpack_sequence[(num_seqs, triton.cdiv(hidden, ELEMENTS))](
        padded, cu_seqlens, out, max_len, hidden, ROWS=TOKENS, WIDTH=ELEMENTS
    )
