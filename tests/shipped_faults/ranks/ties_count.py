"""expect: wrong_result in seen-01. Ties: tokens with the same logit are counted as better ones."""

import triton
import triton.language as tl


@triton.jit
def rank(logits_ptr, tokens_ptr, ranks_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    own = tl.load(logits_ptr + row * row_stride + tl.load(tokens_ptr + row))
    count = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocab_size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * row_stride + at, mask=at < vocab_size, other=-float("inf"))
        count += (x >= own).to(tl.int32)
    tl.store(ranks_ptr + row, tl.sum(count, axis=0))


def ranks(logits, token_ids, ranks):
    rows, vocab_size = logits.shape
    rank[(rows,)](logits, token_ids, ranks, vocab_size, logits.stride(0), BLOCK=1024)
