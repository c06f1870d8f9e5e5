"""expect: wrong_result in heldout-18. Ties: a logit that equals the limit is dropped, though only those below it may be."""

import triton
import triton.language as tl


@triton.jit
def filter_row(logits_ptr, min_p_ptr, idx_mapping_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    least_share = tl.load(min_p_ptr + tl.load(idx_mapping_ptr + req))
    row_ptr = logits_ptr + req * row_stride
    lanes = tl.arange(0, BLOCK)
    if least_share > 0:
        peak = -float("inf")
        for start in range(0, vocab_size, BLOCK):
            x = tl.load(row_ptr + start + lanes, mask=start + lanes < vocab_size, other=-float("inf"))
            peak = tl.maximum(peak, tl.max(x, axis=0))
        limit = peak + tl.log(least_share)
        for start in range(0, vocab_size, BLOCK):
            inside = start + lanes < vocab_size
            x = tl.load(row_ptr + start + lanes, mask=inside, other=0.0)
            tl.store(row_ptr + start + lanes, tl.where(x <= limit, -float("inf"), x), mask=inside)


def min_p(logits, min_p, idx_mapping):
    num_reqs, vocab_size = logits.shape
    filter_row[(num_reqs,)](logits, min_p, idx_mapping, vocab_size, logits.stride(0), BLOCK=1024)
