"""expect: wrong_result in seen-01. Past the end of a sequence: padding is what follows in x, which are tokens of the next sequence."""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def pack_token(x_ptr, cu_seqlens_ptr, padding, out_ptr, count, max_len, hidden, WIDTH: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    sequence = place // max_len
    token = tl.load(cu_seqlens_ptr + sequence) + place % max_len
    present = token < tl.load(cu_seqlens_ptr + count)
    filler = tl.full((WIDTH,), padding, tl.float32).to(out_ptr.dtype.element_ty)
    for first in range(0, hidden, WIDTH):
        i = first + tl.arange(0, WIDTH)
        values = tl.load(x_ptr + token * hidden + i, mask=present & (i < hidden), other=0.0)
        tl.store(out_ptr + place * hidden + i, tl.where(present, values, filler), mask=i < hidden)


def pack_seq(x, cu_seqlens, padding, out):
    num_seqs, max_len, hidden = out.shape
    pack_token[(num_seqs * max_len,)](x, cu_seqlens, padding, out, num_seqs, max_len, hidden, WIDTH=TILE)
