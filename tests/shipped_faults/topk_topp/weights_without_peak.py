"""expect: wrong_result in heldout-22. Overflow: tokens are weighed by exp(x) without the greatest logit."""

import triton
import triton.language as tl

LOWEST = tl.constexpr(-2147483648)


@triton.jit
def sortable(x):
    """An int32 number for each float32, in the same order; both zeros get the same."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def weights_from(row_ptr, vocab_size, peak, bounds, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """For each of eight bounds: how many tokens have a logit of at least that, or what they weigh."""
    sums = tl.zeros((BLOCK, 8), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        inside = tokens < vocab_size
        x = tl.load(row_ptr + tokens, mask=inside, other=-float("inf"))
        weights = tl.where(inside, 1.0, 0.0) if COUNT else tl.exp(x - peak)
        sums += tl.where(sortable(x)[:, None] >= bounds[None, :], weights[:, None], 0.0)
    return tl.sum(sums, axis=0)


@triton.jit
def greatest_bound(row_ptr, vocab_size, peak, goal, least, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The greatest number from `least` on such that the tokens from it on weigh `goal` or more; three bits a pass."""
    for step in range(11):
        bounds = least + (tl.arange(0, 8).to(tl.int64) << (30 - 3 * step))
        enough = weights_from(row_ptr, vocab_size, peak, bounds, COUNT, BLOCK) >= goal
        # Bounds that are reached come first, `least` among them, but for rounding.
        reached = tl.maximum(tl.sum(enough.to(tl.int64), axis=0), 1)
        least += (reached - 1) << (30 - 3 * step)
    return least


@triton.jit
def filter_request(logits_ptr, top_k_ptr, top_p_ptr, idx_mapping_ptr, filtered_ptr, vocab_size, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req)
    row_ptr = logits_ptr + req * vocab_size

    # The least sortable number that passes; 64 bits, so that no bound overflows.
    passing = tl.full((), LOWEST, tl.int64)
    if top_k_ptr is not None:
        k = tl.minimum(tl.load(top_k_ptr + slot), vocab_size).to(tl.float32)
        passing = greatest_bound(row_ptr, vocab_size, 0.0, k, passing, True, BLOCK)

    if top_p_ptr is not None:
        p = tl.load(top_p_ptr + slot)
        if p < 1.0:
            peak = 0.0  # a factor common to all weights cancels
            # What is strictly above the greatest bound weighs less than p of all that passes so far.
            same = passing + tl.zeros((8,), tl.int64)
            total = tl.max(weights_from(row_ptr, vocab_size, peak, same, False, BLOCK), axis=0)
            passing = greatest_bound(row_ptr, vocab_size, peak, p * total, passing, False, BLOCK)

    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=0.0)
        kept = tl.where(sortable(x) >= passing, x, -float("inf"))
        tl.store(filtered_ptr + req * vocab_size + tokens, kept, mask=tokens < vocab_size)


def topk_topp(logits, top_k, top_p, idx_mapping, filtered):
    num_reqs, vocab_size = logits.shape
    filter_request[(num_reqs,)](logits, top_k, top_p, idx_mapping, filtered, vocab_size, BLOCK=1024, num_warps=8)
