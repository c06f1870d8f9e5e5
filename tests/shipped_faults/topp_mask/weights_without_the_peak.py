"""expect: wrong_result in heldout-21. Overflow: exponentials are of the logits as they are, without the greatest of the row."""

import torch
import triton
import triton.language as tl

BINS = tl.constexpr(2048)
ONE = tl.constexpr(1099511627776.0)
ENOUGH_PROGRAMS = 528
LEAST_PART = 2048


@triton.jit
def make_key(x):
    """Return an integer from 0 to 2**32 - 1 for each logit, in the order of logits; both zeros have the same."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64) + 2147483648


@triton.jit
def load_peak(peaks_ptr, row, PARTS: tl.constexpr):
    return tl.max(tl.load(peaks_ptr + row * PARTS + tl.arange(0, PARTS)), axis=0)


@triton.jit
def descend(sums_ptr, row, rows, P, DIGITS: tl.constexpr):
    """Return the first digits of the threshold, the goal, and the weight above: of all tokens with greater digits."""
    bins = tl.arange(0, BINS)
    digits = tl.zeros((), dtype=tl.int64)
    above = tl.zeros((), dtype=tl.int64)
    goal = tl.zeros((), dtype=tl.int64)
    for digit in tl.static_range(DIGITS):
        weights = tl.load(sums_ptr + (digit * rows + row) * BINS + bins)
        total = tl.sum(weights, axis=0)
        if digit == 0:
            goal = tl.minimum(tl.maximum((total.to(tl.float32) * P).to(tl.int64), 1), total)
        reached = above + total - tl.cumsum(weights, axis=0) + weights
        found = tl.max(tl.where(reached >= goal, bins, 0), axis=0)
        above += tl.sum(tl.where(bins > found, weights, 0), axis=0)
        digits = (digits << (10 if digit == 2 else 11)) + found
    return digits, goal, above


@triton.jit
def find_peaks(logits_ptr, peaks_ptr, V, part_length, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first = part * part_length
    last = tl.minimum(first + part_length, V)
    peaks = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * V + tokens, mask=tokens < last, other=float("-inf"))
        peaks = tl.maximum(peaks, x)
    tl.store(peaks_ptr + row * tl.num_programs(0) + part, tl.max(peaks, axis=0))


@triton.jit
def add_weights(
    logits_ptr, peaks_ptr, sums_ptr, V, P, part_length, DIGIT: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """Add the weights of tokens with the known digits, by their next digit."""
    part, row, rows = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(1)
    WIDTH: tl.constexpr = 10 if DIGIT == 2 else 11
    SHIFT: tl.constexpr = 21 if DIGIT == 0 else 10 if DIGIT == 1 else 0
    peak = load_peak(peaks_ptr, row, PARTS)
    digits, _goal, _above = descend(sums_ptr, row, rows, P, DIGIT)
    first = part * part_length
    last = tl.minimum(first + part_length, V)
    for start in range(first, last, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * V + tokens, mask=tokens < last, other=float("-inf"))
        weight = (tl.exp(x) * ONE).to(tl.int64)
        key = make_key(x)
        counted = (weight > 0) & ((key >> (SHIFT + WIDTH)) == digits)
        place = (DIGIT * rows + row) * BINS + ((key >> SHIFT) & ((1 << WIDTH) - 1))
        tl.atomic_add(sums_ptr + place, weight, mask=counted, sem="relaxed")


@triton.jit
def count_equals(logits_ptr, sums_ptr, counts_ptr, V, P, part_length, BLOCK: tl.constexpr):
    part, row, rows = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(1)
    threshold, _goal, _above = descend(sums_ptr, row, rows, P, 3)
    first = part * part_length
    last = tl.minimum(first + part_length, V)
    counts = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(first, last, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * V + tokens, mask=tokens < last, other=float("-inf"))
        counts += (make_key(x) == threshold).to(tl.int32)
    tl.store(counts_ptr + row * tl.num_programs(0) + part, tl.sum(counts, axis=0))


@triton.jit
def mark_tokens(
    logits_ptr, sums_ptr, counts_ptr, mask_ptr, V, P, part_length, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    part, row, rows = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(1)
    threshold, goal, above = descend(sums_ptr, row, rows, P, 3)
    parts = tl.arange(0, PARTS)
    counts = tl.load(counts_ptr + row * PARTS + parts)
    weight = tl.load(sums_ptr + (2 * rows + row) * BINS + (threshold & 1023)) // tl.sum(counts, axis=0)
    kept = (goal - above + weight - 1) // weight
    seen = tl.sum(tl.where(parts < part, counts, 0), axis=0)
    first = part * part_length
    last = tl.minimum(first + part_length, V)
    for start in range(first, last, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * V + tokens, mask=tokens < last, other=float("-inf"))
        key = make_key(x)
        equal = (key == threshold).to(tl.int32)
        number = seen + tl.cumsum(equal, axis=0)
        keep = (key > threshold) | ((equal == 1) & (number <= kept))
        tl.store(mask_ptr + row * V + tokens, keep, mask=tokens < last)
        seen += tl.sum(equal, axis=0)


def mark_nucleus(logits, P, mask):
    B, V = logits.shape
    wanted = min(triton.cdiv(ENOUGH_PROGRAMS, B), triton.cdiv(V, LEAST_PART), 64)
    parts = triton.next_power_of_2(wanted)
    part_length = triton.cdiv(triton.cdiv(V, parts), 16) * 16
    peaks = torch.empty((B, parts), dtype=torch.float32, device=logits.device)
    counts = torch.empty((B, parts), dtype=torch.int32, device=logits.device)
    sums = torch.empty((3, B, 2048), dtype=torch.int64, device=logits.device).zero_()
    grid = (parts, B)
    find_peaks[grid](logits, peaks, V, part_length, BLOCK=1024)
    for digit in range(3):
        add_weights[grid](logits, peaks, sums, V, P, part_length, DIGIT=digit, PARTS=parts, BLOCK=1024)
    count_equals[grid](logits, sums, counts, V, P, part_length, BLOCK=1024)
    mark_tokens[grid](logits, sums, counts, mask, V, P, part_length, PARTS=parts, BLOCK=1024)
