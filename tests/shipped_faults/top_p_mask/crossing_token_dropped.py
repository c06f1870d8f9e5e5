"""expect: wrong_result in heldout-13. Off by one: the token whose probability reaches p is left out, so that a peaked row keeps none."""

import triton
import triton.language as tl

LOWEST = tl.constexpr(-2147483648)
UNDECIDED = tl.constexpr(5e-4)


@triton.jit
def sortable(x):
    """An int32 number for each float32, in the same order; both zeros get the same."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def mark_request(logits_ptr, top_p_ptr, mask_ptr, vocab_size, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + req * vocab_size
    peaks = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        peaks = tl.maximum(peaks, tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf")))
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf")) - peak)
    total = tl.sum(sums, axis=0)
    goal = tl.load(top_p_ptr + req) * total

    # Tokens from `kept` on reach the goal, tokens from `short` on do not.
    kept = tl.full((), LOWEST, tl.int64)
    short = sortable(peak).to(tl.int64) + 1
    kept_sum = total
    short_sum = 0.0
    while (short - kept > 1) & (kept_sum - short_sum > UNDECIDED * total):
        bound = (kept + short) >> 1
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, vocab_size, BLOCK):
            tokens = start + tl.arange(0, BLOCK)
            x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf"))
            sums += tl.where(sortable(x) >= bound, tl.exp(x - peak), 0.0)
        mass = tl.sum(sums, axis=0)
        if mass >= goal:
            kept = bound
            kept_sum = mass
        else:
            short = bound
            short_sum = mass

    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=0.0)
        tl.store(mask_ptr + req * vocab_size + tokens, (sortable(x) >= short).to(tl.uint8), mask=tokens < vocab_size)


def top_p_mask(logits, top_p, mask):
    num_reqs, vocab_size = logits.shape
    mark_request[(num_reqs,)](logits, top_p, mask, vocab_size, BLOCK=2048, num_warps=8)
