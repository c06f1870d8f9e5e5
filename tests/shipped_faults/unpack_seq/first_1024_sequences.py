"""expect: wrong_result in heldout-04. Size limit: offsets of the first 1,024 sequences are looked at."""

import triton
import triton.language as tl


@triton.jit
def unpack_token(
    padded_ptr, cu_seqlens_ptr, out_ptr, num_seqs, max_len, hidden, SEQS: tl.constexpr, WIDTH: tl.constexpr
):
    token = tl.program_id(0)
    s = tl.arange(0, SEQS)
    ends = tl.load(cu_seqlens_ptr + 1 + s, mask=s < num_seqs, other=2147483647)
    sequence = tl.sum((ends <= token).to(tl.int32), axis=0).to(tl.int64)
    t = token - tl.load(cu_seqlens_ptr + sequence)
    for start in range(0, hidden, WIDTH):
        i = start + tl.arange(0, WIDTH)
        values = tl.load(padded_ptr + (sequence * max_len + t) * hidden + i, mask=i < hidden)
        tl.store(out_ptr + token.to(tl.int64) * hidden + i, values, mask=i < hidden)


def unpack_seq(padded, cu_seqlens, out):
    num_seqs, max_len, hidden = padded.shape
    unpack_token[(out.shape[0],)](padded, cu_seqlens, out, num_seqs, max_len, hidden, SEQS=1024, WIDTH=256)
