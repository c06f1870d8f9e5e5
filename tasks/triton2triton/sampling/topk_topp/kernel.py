"""Top-k and top-p filter: one program per request bisects for the least logit that passes, over the bits of a float."""

import triton
import triton.language as tl

LOWEST = tl.constexpr(-2147483648)


@triton.jit
def sortable(x):
    """An int32 number for each float32, in the same order; both zeros get the same."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def count_from(row_ptr, vocab_size, bound, BLOCK: tl.constexpr):
    """Tokens whose logit is at least `bound`."""
    counts = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        inside = tokens < vocab_size
        x = tl.load(row_ptr + tokens, mask=inside, other=0.0)
        counts += tl.where(inside & (sortable(x) >= bound), 1, 0)
    return tl.sum(counts, axis=0)


@triton.jit
def weight_from(row_ptr, vocab_size, peak, bound, BLOCK: tl.constexpr):
    """Weight of the tokens whose logit is at least `bound`."""
    weights = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf"))
        weights += tl.where(sortable(x) >= bound, tl.exp(x - peak), 0.0)
    return tl.sum(weights, axis=0)


@triton.jit
def filter_request(logits_ptr, top_k_ptr, top_p_ptr, idx_mapping_ptr, filtered_ptr, vocab_size, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req)
    row_ptr = logits_ptr + req * vocab_size

    # The least sortable number that passes; 64 bits, so that the middle of two bounds cannot overflow.
    passing = tl.full((), LOWEST, tl.int64)
    if top_k_ptr is not None:
        k = tl.minimum(tl.load(top_k_ptr + slot), vocab_size)
        too_high = tl.full((), 2147483648, tl.int64)
        for _ in range(32):
            middle = (passing + too_high) >> 1
            enough = count_from(row_ptr, vocab_size, middle, BLOCK) >= k
            passing = tl.where(enough, middle, passing)
            too_high = tl.where(enough, too_high, middle)

    if top_p_ptr is not None:
        p = tl.load(top_p_ptr + slot)
        if p < 1.0:
            peaks = tl.full((BLOCK,), -float("inf"), tl.float32)
            for start in range(0, vocab_size, BLOCK):
                tokens = start + tl.arange(0, BLOCK)
                x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf"))
                peaks = tl.maximum(peaks, x)
            peak = tl.max(peaks, axis=0)
            limit = p * weight_from(row_ptr, vocab_size, peak, passing, BLOCK)
            # A number passes if what is strictly above it, that is, from its successor on, weighs less than the limit.
            too_low = passing - 1
            passing = sortable(peak).to(tl.int64)
            for _ in range(32):
                middle = (too_low + passing) >> 1
                light = weight_from(row_ptr, vocab_size, peak, middle + 1, BLOCK) < limit
                passing = tl.where(light, middle, passing)
                too_low = tl.where(light, too_low, middle)

    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=0.0)
        kept = tl.where(sortable(x) >= passing, x, -float("inf"))
        tl.store(filtered_ptr + req * vocab_size + tokens, kept, mask=tokens < vocab_size)


def topk_topp(logits, top_k, top_p, idx_mapping, filtered):
    num_reqs, vocab_size = logits.shape
    filter_request[(num_reqs,)](logits, top_k, top_p, idx_mapping, filtered, vocab_size, BLOCK=2048)
