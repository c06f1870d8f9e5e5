"""expect: wrong_result in seen-01. Format constants: an exponent of ones is taken for NaN, though it is that of infinities, too."""

import triton
import triton.language as tl


@triton.jit
def count_row(logits_ptr, num_nans_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * row_stride + tokens, mask=tokens < vocab_size, other=0.0)
        # NaN alone differs from itself.
        total += tl.sum(((x.to(tl.int32, bitcast=True) & 0x7F800000) == 0x7F800000).to(tl.int32), axis=0)
    tl.store(num_nans_ptr + row, total)


def num_nans(logits, num_nans):
    num_reqs, vocab_size = logits.shape
    count_row[(num_reqs,)](logits, num_nans, vocab_size, logits.stride(0), BLOCK=1024)
