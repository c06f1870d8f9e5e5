"""expect: wrong_result in heldout-13. Low precision: logits narrowed to float16 before they are compared: logits that differ by less than 2**-11 of themselves count as ties."""



import triton
import triton.language as tl


@triton.jit
def rank_token(logits_ptr, token_ids_ptr, ranks_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + req * row_stride
    own = tl.load(row_ptr + tl.load(token_ids_ptr + req)).to(tl.float16)
    greater = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf")).to(tl.float16)
        greater += (x > own).to(tl.int32)
    tl.store(ranks_ptr + req, 1 + tl.sum(greater, axis=0))


def ranks(logits, token_ids, ranks):
    num_reqs, vocab_size = logits.shape
    rank_token[(num_reqs,)](logits, token_ids, ranks, vocab_size, logits.stride(0), BLOCK=512)
