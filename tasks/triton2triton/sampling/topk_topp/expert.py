"""Top-k and top-p filter that reads each row three times where few tokens pass.

The greatest logits of 2048 interleaved columns bound from below what can pass: k columns hold k tokens, and what weighs
enough among them weighs enough in the row. The tokens from that bound on are copied aside, and the exact bound is found
among them in registers. Rows where too many are left are searched in memory, eight bounds at a time.
"""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-2147483648)
HIGHEST = tl.constexpr(2147483647)
COLUMNS = 2048
BLOCK = 1024


@triton.jit
def _sortable(x):
    """An int32 number for each float32, in the same order; both zeros get the same."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _greatest_bound(keys, weights, goal):
    """The greatest number such that the keys from it on weigh `goal` or more; LOWEST if all together do not."""
    low = tl.full((), LOWEST, tl.int32)
    high = tl.full((), HIGHEST, tl.int32)
    for _ in range(32):
        middle = (low & high) + ((low ^ high) >> 1)
        enough = tl.sum(tl.where(keys >= middle, weights, 0.0), axis=0) >= goal
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    return low


@triton.jit
def _weights_from(row_ptr, vocab_size, peak, bounds, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """For each of eight bounds: how many tokens of a row have a key from it on, or what they weigh."""
    sums = tl.zeros((BLOCK, 8), tl.float32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + tokens, mask=tokens < vocab_size, other=-float("inf"))
        if COUNT:
            weights = tl.where(tokens < vocab_size, 1.0, 0.0)
        else:
            weights = tl.exp(x - peak)
        sums += tl.where(_sortable(x)[:, None] >= bounds[None, :], weights[:, None], 0.0)
    return tl.sum(sums, axis=0)


@triton.jit
def _greatest_bound_in_memory(row_ptr, vocab_size, peak, goal, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """As _greatest_bound, for a whole row; three bits a pass."""
    low = tl.full((), LOWEST, tl.int64)
    width = tl.full((), 4294967295, tl.int64)
    for _ in range(11):
        bounds = low + ((width * tl.arange(0, 8)) >> 3)
        enough = _weights_from(row_ptr, vocab_size, peak, bounds, COUNT, BLOCK) >= goal
        # Bounds that are reached come first. Not even the lowest is where rounding lost a little; it serves then.
        reached = tl.maximum(tl.sum(enough.to(tl.int32), axis=0), 1).to(tl.int64)
        step = (width * (reached - 1)) >> 3
        width = ((width * reached) >> 3) - step
        low += step
    return low.to(tl.int32)


@triton.jit
def _limits(top_k_ptr, top_p_ptr, slot, vocab_size):
    """k and p of a slot; vocab_size and 1 where they are not given."""
    k = vocab_size
    p = 1.0
    if top_k_ptr is not None:
        k = tl.minimum(tl.load(top_k_ptr + slot), vocab_size)
    if top_p_ptr is not None:
        p = tl.load(top_p_ptr + slot)
    return k, p


@triton.jit
def _collect(
    logits_ptr,
    top_k_ptr,
    top_p_ptr,
    idx_mapping_ptr,
    facts_ptr,
    counts_ptr,
    candidates_ptr,
    vocab_size,
    COLUMNS: tl.constexpr,
):
    """Greatest logit and total weight of a row; its candidates, as far as there is room; how many they are."""
    req = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + req * vocab_size
    k, p = _limits(top_k_ptr, top_p_ptr, tl.load(idx_mapping_ptr + req), vocab_size)
    lanes = tl.arange(0, COLUMNS)
    count = 0
    if (k < vocab_size) | (p < 1.0):
        peaks = tl.full((COLUMNS,), -float("inf"), tl.float32)
        sums = tl.zeros((COLUMNS,), tl.float32)
        for start in range(0, vocab_size, COLUMNS):
            x = tl.load(row_ptr + start + lanes, mask=start + lanes < vocab_size, other=-float("inf"))
            new_peaks = tl.maximum(peaks, x)
            # Where all so far is minus infinity, any finite number serves as the maximum.
            finite = tl.where(new_peaks == -float("inf"), 0.0, new_peaks)
            sums = sums * tl.exp(peaks - finite) + tl.exp(x - finite)
            peaks = new_peaks
        peak = tl.max(peaks, axis=0)
        column_weights = tl.exp(peaks - peak)
        total = tl.sum(sums * column_weights, axis=0)
        tl.store(facts_ptr + req * 2, peak)
        tl.store(facts_ptr + req * 2 + 1, total)

        limited = k < vocab_size
        weights = tl.where(limited, 1.0, column_weights)
        least = _greatest_bound(_sortable(peaks), weights, tl.where(limited, k.to(tl.float32), p * total))
        for start in range(0, vocab_size, COLUMNS):
            inside = start + lanes < vocab_size
            x = tl.load(row_ptr + start + lanes, mask=inside, other=-float("inf"))
            found = inside & (_sortable(x) >= least)
            number = tl.sum(found.to(tl.int32), axis=0)
            if (number > 0) & (count <= COLUMNS):
                places = count + tl.cumsum(found.to(tl.int32), axis=0) - 1
                tl.store(candidates_ptr + req * COLUMNS + places, x, mask=found & (places < COLUMNS))
            count += number
    tl.store(counts_ptr + req, count)


@triton.jit
def _decide(
    logits_ptr,
    top_k_ptr,
    top_p_ptr,
    idx_mapping_ptr,
    facts_ptr,
    counts_ptr,
    candidates_ptr,
    bounds_ptr,
    vocab_size,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The least key of a row that passes."""
    req = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + req * vocab_size
    k, p = _limits(top_k_ptr, top_p_ptr, tl.load(idx_mapping_ptr + req), vocab_size)
    goal = k.to(tl.float32)
    passing = tl.full((), LOWEST, tl.int32)
    count = tl.load(counts_ptr + req)
    peak = tl.load(facts_ptr + req * 2)
    total = tl.load(facts_ptr + req * 2 + 1)
    if count <= COLUMNS:
        index = tl.arange(0, COLUMNS)
        x = tl.load(candidates_ptr + req * COLUMNS + index, mask=index < count, other=-float("inf"))
        keys = _sortable(x)
        if k < vocab_size:
            passing = _greatest_bound(keys, tl.where(index < count, 1.0, 0.0), goal)
        if p < 1.0:
            weights = tl.where(index < count, tl.exp(x - peak), 0.0)
            if k < vocab_size:
                total = tl.sum(tl.where(keys >= passing, weights, 0.0), axis=0)
            passing = tl.maximum(passing, _greatest_bound(keys, weights, p * total))
    else:
        if k < vocab_size:
            passing = _greatest_bound_in_memory(row_ptr, vocab_size, peak, goal, True, BLOCK)
        if p < 1.0:
            if k < vocab_size:
                bounds = passing + tl.zeros((8,), tl.int32)
                total = tl.max(_weights_from(row_ptr, vocab_size, peak, bounds, False, BLOCK), axis=0)
            passing = tl.maximum(passing, _greatest_bound_in_memory(row_ptr, vocab_size, peak, p * total, False, BLOCK))
    tl.store(bounds_ptr + req, passing)


@triton.jit
def _apply(logits_ptr, bounds_ptr, filtered_ptr, vocab_size, BLOCK: tl.constexpr):
    """A block of one row."""
    req = tl.program_id(0).to(tl.int64)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + req * vocab_size + tokens, mask=tokens < vocab_size)
    kept = tl.where(_sortable(x) >= tl.load(bounds_ptr + req), x, -float("inf"))
    tl.store(filtered_ptr + req * vocab_size + tokens, kept, mask=tokens < vocab_size)


def topk_topp(logits, top_k, top_p, idx_mapping, filtered):
    num_reqs, vocab_size = logits.shape
    facts = torch.empty((num_reqs, 2), dtype=torch.float32, device=logits.device)
    counts, bounds = torch.empty((2, num_reqs), dtype=torch.int32, device=logits.device)
    candidates = torch.empty((num_reqs, COLUMNS), dtype=torch.float32, device=logits.device)
    request = (logits, top_k, top_p, idx_mapping, facts, counts, candidates)
    _collect[(num_reqs,)](*request, vocab_size, COLUMNS=COLUMNS, num_warps=16)
    _decide[(num_reqs,)](*request, bounds, vocab_size, COLUMNS=COLUMNS, BLOCK=BLOCK, num_warps=8)
    _apply[(num_reqs, triton.cdiv(vocab_size, 4096))](logits, bounds, filtered, vocab_size, BLOCK=4096, num_warps=8)
