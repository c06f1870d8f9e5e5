"""expect: wrong_result in heldout-14. Values: the running maximum starts at the least float16 number, -65504, in place of minus infinity: rows whose logits are all below it get an empty sum."""



import triton
import triton.language as tl


@triton.jit
def row_logprobs(
    logits_ptr,
    token_ids_ptr,
    logprobs_ptr,
    vocab_size,
    row_stride,
    num_logprobs,
    BLOCK: tl.constexpr,
    WANTED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * row_stride
    lanes = tl.arange(0, BLOCK)
    peaks = tl.full((BLOCK,), -65504.0, tl.float32)
    for start in range(0, vocab_size, BLOCK):
        x = tl.load(row_ptr + start + lanes, mask=start + lanes < vocab_size, other=-float("inf"))
        peaks = tl.maximum(peaks, x)
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        x = tl.load(row_ptr + start + lanes, mask=start + lanes < vocab_size, other=-float("inf"))
        sums += tl.exp(x - peak)
    lse = peak + tl.log(tl.sum(sums, axis=0))

    for start in range(0, num_logprobs, WANTED):
        entries = start + tl.arange(0, WANTED)
        inside = entries < num_logprobs
        tokens = tl.load(token_ids_ptr + row * num_logprobs + entries, mask=inside, other=-1)
        x = tl.load(row_ptr + tokens, mask=tokens >= 0, other=-float("inf"))
        tl.store(logprobs_ptr + row * num_logprobs + entries, x - lse, mask=inside)


def topk_log_softmax(logits, token_ids, logprobs):
    num_reqs, vocab_size = logits.shape
    row_logprobs[(num_reqs,)](
        logits, token_ids, logprobs, vocab_size, logits.stride(0), token_ids.shape[1], BLOCK=1024, WANTED=32
    )
