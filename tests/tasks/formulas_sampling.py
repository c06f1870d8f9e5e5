"""The operators of sampling, as `formulas` has the others: a loop over requests, and mostly one over tokens.

Tokens differ from slots and from requests: logits have a row per request, what lasts has a row per slot.
"""

from __future__ import annotations

import math

import numpy as np

from tests.tasks.formulas import Array, Results


def _bits(words: Array, count: int) -> Array:
    """The first `count` bits of a row of int32 words, least significant first, as booleans."""
    return np.array([(int(words[v // 32]) >> (v % 32)) & 1 for v in range(count)], dtype=bool)


def _philox(counter: Array, key: int) -> Array:
    """First word of Philox 4x32-10 for the counters (counter, 0, 0, 0) under a key of 64 bits, as uint64.

    Constants from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    low32, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    multiplier0, multiplier1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    c0 = counter.astype(np.uint64)
    c1, c2, c3 = np.zeros_like(c0), np.zeros_like(c0), np.zeros_like(c0)
    key0, key1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    for _ in range(10):
        product0, product1 = multiplier0 * c0, multiplier1 * c2
        c0 = (product1 >> shift) ^ c1 ^ np.uint64(key0)
        c2 = (product0 >> shift) ^ c3 ^ np.uint64(key1)
        c1, c3 = product1 & low32, product0 & low32
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.asarray(c0)


def _uniform(words: Array) -> Array:
    """Numbers of [0, 1), each worked out in float32, from words of 32 bits."""
    signed = words.astype(np.uint32).view(np.int32).astype(np.int64)
    positive = np.where(signed < 0, -signed - 1, signed)
    return np.asarray(positive.astype(np.float32) * np.float32(4.6566127342e-10))


# Filters of logits, in place


def apply_grammar_bitmask(logits: Array, bitmask: Array, row_indices: Array) -> Results:
    y = logits.copy()
    for mask, row in zip(bitmask, row_indices.tolist(), strict=True):
        y[row, ~_bits(mask, y.shape[1])] = -math.inf
    return (y,)


def bad_words(
    logits: Array,
    bad_word_ids: Array,
    offsets: Array,
    num_bad_words: Array,
    token_ids: Array,
    seq_lens: Array,
    idx_mapping: Array,
) -> Results:
    y = logits.copy()
    for r, s in enumerate(idx_mapping.tolist()):
        history = token_ids[s, : int(seq_lens[s])].tolist()
        for j in range(int(num_bad_words[s])):
            *before, last = bad_word_ids[s, int(offsets[s, j]) : int(offsets[s, j + 1])].tolist()
            if len(before) <= len(history) and history[len(history) - len(before) :] == before:
                y[r, last] = -math.inf
    return (y,)


def logit_bias(
    logits: Array,
    allowed_token_ids: Array,
    num_allowed: Array,
    bias_token_ids: Array,
    bias: Array,
    num_bias: Array,
    stop_token_ids: Array,
    num_stop: Array,
    min_lens: Array,
    idx_mapping: Array,
    positions: Array,
) -> Results:
    y = logits.astype(np.float32)
    for r, s in enumerate(idx_mapping.tolist()):
        if num_allowed[s] > 0:
            allowed = set(allowed_token_ids[s, : int(num_allowed[s])].tolist())
            for v in range(y.shape[1]):
                if v not in allowed:
                    y[r, v] = -math.inf
        for i in range(int(num_bias[s])):
            y[r, int(bias_token_ids[s, i])] += np.float32(bias[s, i])
        if positions[r] < min_lens[s]:
            for i in range(int(num_stop[s])):
                y[r, int(stop_token_ids[s, i])] = -math.inf
    return (y,)


def min_p(logits: Array, min_p: Array, idx_mapping: Array) -> Results:
    y = logits.copy()
    for r, s in enumerate(idx_mapping.tolist()):
        if min_p[s] > 0:
            y[r, logits[r] < logits[r].max() + math.log(min_p[s])] = -math.inf
    return (y,)


def topk_topp(logits: Array, top_k: Array | None, top_p: Array | None, idx_mapping: Array) -> Results:
    filtered = np.full_like(logits, -math.inf)
    for r, s in enumerate(idx_mapping.tolist()):
        row = logits[r]
        k = len(row) if top_k is None else int(top_k[s])
        p = 1.0 if top_p is None else float(top_p[s])
        weights = np.exp(row - row.max())
        passes_k = np.array([np.count_nonzero(row > x) < k for x in row])
        total = weights[passes_k].sum()
        for v in np.flatnonzero(passes_k):
            if p == 1 or weights[passes_k & (row > row[v])].sum() < p * total:
                filtered[r, v] = row[v]
    return (filtered,)


# Changes of logits, in place


def temperature(logits: Array, temperature: Array, idx_mapping: Array) -> Results:
    y = logits.copy()
    for r, s in enumerate(idx_mapping.tolist()):
        if temperature[s] != 0:
            y[r] = logits[r] / temperature[s]
    return (y,)


def penalties(
    logits: Array,
    repetition_penalty: Array,
    frequency_penalty: Array,
    presence_penalty: Array,
    prompt_bitmask: Array,
    output_counts: Array,
    idx_mapping: Array,
) -> Results:
    y = logits.copy()
    for r, s in enumerate(idx_mapping.tolist()):
        in_prompt = _bits(prompt_bitmask[s], y.shape[1])
        for v, count in enumerate(output_counts[s].tolist()):
            if in_prompt[v] or count > 0:
                factor = repetition_penalty[s]
                y[r, v] = y[r, v] / factor if y[r, v] > 0 else y[r, v] * factor
            y[r, v] -= frequency_penalty[s] * count
            if count > 0:
                y[r, v] -= presence_penalty[s]
    return (y,)


# Counts and tokens


def bincount(
    token_ids: Array,
    prompt_lens: Array,
    seq_lens: Array,
    idx_mapping: Array,
    prompt_bitmask: Array,
    output_counts: Array,
) -> Results:
    mask, counts = prompt_bitmask.copy(), output_counts.copy()
    for s in idx_mapping.tolist():
        prompt = int(prompt_lens[s])
        words = [0] * mask.shape[1]
        for v in token_ids[s, :prompt].tolist():
            words[v // 32] |= 1 << (v % 32)
        mask[s] = np.array(words, dtype=np.uint32).view(np.int32)
        counts[s] = 0
        for v in token_ids[s, prompt : int(seq_lens[s])].tolist():
            counts[s, v] += 1
    return mask, counts


def num_nans(logits: Array) -> Results:
    return (np.array([sum(math.isnan(x) for x in row.tolist()) for row in logits]),)


def prompt_logprobs_token_ids(
    token_ids: Array,
    prompt_lens: Array,
    num_computed_tokens: Array,
    cu_seqlens: Array,
    idx_mapping: Array,
    num_tokens: int,
) -> Results:
    following = np.zeros(num_tokens, dtype=np.int64)
    for r, s in enumerate(idx_mapping.tolist()):
        for i in range(int(cu_seqlens[r + 1]) - int(cu_seqlens[r])):
            place = int(num_computed_tokens[s]) + i + 1
            following[int(cu_seqlens[r]) + i] = token_ids[s, place] if place < prompt_lens[s] else -1
    return (following,)


def ranks(logits: Array, token_ids: Array) -> Results:
    better = [sum(x > row[t] for x in row) for row, t in zip(logits, token_ids.tolist(), strict=True)]
    return (np.array(better) + 1,)


def topk_log_softmax(logits: Array, token_ids: Array) -> Results:
    logprobs = np.full(token_ids.shape, -math.inf)
    for r, row in enumerate(logits):
        log_sum = row.max() + math.log(np.exp(row - row.max()).sum())
        for i, token in enumerate(token_ids[r].tolist()):
            if token != -1:
                logprobs[r, i] = row[token] - log_sum
    return (logprobs,)


def gumbel_sample(
    logits: Array, temperature: Array, seeds: Array, idx_mapping: Array, positions: Array, apply_temperature: bool
) -> Results:
    sampled = np.empty(len(logits), dtype=np.int64)
    for r, s in enumerate(idx_mapping.tolist()):
        scores = logits[r].copy()
        if temperature[s] != 0:
            if apply_temperature:
                scores /= temperature[s]
            key = int(_philox(positions[r : r + 1], int(seeds[s]))[0])
            u = np.maximum(_uniform(_philox(np.arange(len(scores)), key)).astype(np.float64), 2.0**-32)
            scores += -np.log(-np.log(u))
        sampled[r] = np.argmax(scores)
    return (sampled,)
