"""The attention kernels of serving engines, as `formulas` has the others: loops over sequences, tokens, heads and keys.

A key that a query does not see is left out of its sums, rather than masked. Where a log-sum-exp says that a part has
no keys, the part is left out in the same way, so that what its tensors hold cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.tasks.formulas import Array, Results


class _Softmax(NamedTuple):
    """Exponentials of the scores of one query above the greatest of them, and what they add up to."""

    greatest: float
    total: float
    acc: Array

    @property
    def normalised(self) -> Array:
        return np.asarray(self.acc / self.total)

    @property
    def log_sum_exp(self) -> float:
        return self.greatest + math.log(self.total)


def _softmax_times(scores: Array, values: Array) -> _Softmax:
    """For scores (T,) of at least one key and values (T, D)."""
    greatest = float(scores.max())
    exponentials = np.exp(scores - greatest)
    return _Softmax(greatest, float(exponentials.sum()), np.einsum("t,td->d", exponentials, values))


def _capped(scores: Array, softcap: float) -> Array:
    return np.asarray(softcap * np.tanh(scores / softcap)) if softcap > 0 else scores


def _scores(query: Array, keys: Array, sm_scale: float) -> Array:
    """Of one query (D,) and keys (T, D)."""
    return np.asarray(sm_scale * np.einsum("td,d->t", keys, query))


def _paged(cache: Array, blocks: Array, length: int) -> Array:
    """The first `length` tokens (length, KH, D) of a sequence that lies in these blocks of the cache."""
    block_size = cache.shape[1]
    tokens = np.empty((length, *cache.shape[2:]))
    for t in range(length):
        tokens[t] = cache[int(blocks[t // block_size]), t % block_size]
    return tokens


def _sequences(cu_seqlens: Array) -> Iterator[tuple[int, int, int]]:
    """Number, first token and end of every sequence."""
    for s in range(len(cu_seqlens) - 1):
        yield s, int(cu_seqlens[s]), int(cu_seqlens[s + 1])


def _splits(length: int, num_splits: int) -> Iterator[tuple[int, slice]]:
    """Number and keys of every split that is not empty."""
    size = -(-length // num_splits)
    for j in range(num_splits):
        if j * size < length:
            yield j, slice(j * size, min((j + 1) * size, length))


def _first_visible(position: int, sliding_window: int) -> int:
    return max(0, position - sliding_window + 1) if sliding_window > 0 else 0


# What is combined from parts


def _combined(outs: list[Array], logs: list[float], base: float) -> tuple[Array, float]:
    """The parts that have keys, weighted by their log-sum-exp, and the log-sum-exp of all; at least one part."""
    greatest = max(logs)
    powers = [base ** (log - greatest) for log in logs]
    acc = np.zeros_like(outs[0])
    for power, out in zip(powers, outs, strict=True):
        acc += power / sum(powers) * out
    return acc, greatest + math.log(sum(powers)) / math.log(base)


def merge_attn_states(prefix_out: Array, suffix_out: Array, prefix_lse: Array, suffix_lse: Array) -> Results:
    out, out_lse = np.zeros_like(prefix_out), np.full(prefix_lse.shape, -np.inf)
    for h, t in np.ndindex(*prefix_lse.shape):
        sides = ((prefix_out[t, h], float(prefix_lse[h, t])), (suffix_out[t, h], float(suffix_lse[h, t])))
        with_keys = [side for side in sides if not math.isinf(side[1])]
        if with_keys:
            outs, logs = [side[0] for side in with_keys], [side[1] for side in with_keys]
            out[t, h], out_lse[h, t] = _combined(outs, logs, math.e)
    return out, out_lse


def decode_attn_stage2(partial: Array, partial_lse: Array, seq_lens: Array, num_splits: int) -> Results:
    seqs, heads, _, value_dim = partial.shape
    out, lse = np.empty((seqs, heads, value_dim)), np.empty((seqs, heads))
    for s, h in np.ndindex(seqs, heads):
        used = [j for j, _ in _splits(int(seq_lens[s]), num_splits)]
        outs, logs = [partial[s, h, j] for j in used], [float(partial_lse[s, h, j]) for j in used]
        out[s, h], lse[s, h] = _combined(outs, logs, math.e)
    return out, lse


def correct_attn_cp_out(attn_out: Array, lses: Array, rank: int, base2: bool) -> Results:
    base = 2.0 if base2 else math.e
    out, lse = np.zeros_like(attn_out), np.full(lses.shape[1:], -np.inf)
    for t, h in np.ndindex(*lse.shape):
        logs = [float(log) for log in lses[:, t, h] if math.isfinite(log)]
        if logs:
            lse[t, h] = max(logs) + math.log(sum(base ** (log - max(logs)) for log in logs)) / math.log(base)
        if math.isfinite(lses[rank, t, h]):
            out[t, h] = attn_out[t, h] * base ** float(lses[rank, t, h] - lse[t, h])
    return out, lse


def reduce_segments(segment_acc: Array, segment_max: Array, segment_sum: Array) -> Results:
    tokens, heads, segments, head_dim = segment_acc.shape
    out = np.zeros((tokens, heads, head_dim))
    for t, h in np.ndindex(tokens, heads):
        used = [j for j in range(segments) if segment_max[t, h, j] > -np.inf]
        if used:
            greatest = max(float(segment_max[t, h, j]) for j in used)
            weights = [math.exp(segment_max[t, h, j] - greatest) for j in used]
            total = sum(w * float(segment_sum[t, h, j]) for w, j in zip(weights, used, strict=True))
            for w, j in zip(weights, used, strict=True):
                out[t, h] += w / total * segment_acc[t, h, j]
    return (out,)


# Rotary positions


def _axis(pair: int, sections: tuple[int, int, int], interleaved: bool) -> int:
    """The axis of a pair: 0 time, 1 height, 2 width; `sections` are the pairs of the three."""
    section_t, section_h, section_w = sections
    if interleaved:
        turn, axis = divmod(pair, 3)
        return axis if (axis == 1 and turn < section_h) or (axis == 2 and turn < section_w) else 0
    if pair < section_t:
        return 0
    return 1 if pair < section_t + section_h else 2


def mrope(
    query: Array,
    key: Array,
    cos: Array,
    sin: Array,
    section_t: int,
    section_h: int,
    interleaved: bool,
    rotary_dim: int,
) -> Results:
    half = rotary_dim // 2
    sections = (section_t, section_h, half - section_t - section_h)
    rotated = query.copy(), key.copy()
    for before, after in zip((query, key), rotated, strict=True):
        for t, i in np.ndindex(len(query), half):
            axis = _axis(i, sections, interleaved)
            c, s = cos[axis, t, i], sin[axis, t, i]
            x, y = before[t, :, i], before[t, :, i + half]
            after[t, :, i] = x * c - y * s
            after[t, :, i + half] = y * c + x * s
    return rotated


# Attention over parts of the keys


def decode_attn_stage1(
    query: Array,
    key_cache: Array,
    value_cache: Array,
    kv_indices: Array,
    cu_seqlens: Array,
    sm_scale: float,
    softcap: float,
    num_splits: int,
) -> Results:
    seqs, heads, head_dim = query.shape
    partial = np.zeros((seqs, heads, num_splits, head_dim))
    partial_lse = np.full((seqs, heads, num_splits), -np.inf)
    for s, first, end in _sequences(cu_seqlens):
        rows = [int(row) for row in kv_indices[first:end]]
        for h in range(heads):
            for j, keys in _splits(end - first, num_splits):
                of_split = rows[keys]
                scores = _capped(_scores(query[s, h], key_cache[of_split, h], sm_scale), softcap)
                attention = _softmax_times(scores, value_cache[of_split, h])
                partial[s, h, j], partial_lse[s, h, j] = attention.normalised, attention.log_sum_exp
    return partial, partial_lse


def decode_attn_grouped_stage1(
    query: Array,
    key_cache: Array,
    value_cache: Array,
    block_table: Array,
    seq_lens: Array,
    sm_scale: float,
    num_splits: int,
) -> Results:
    seqs, heads, _ = query.shape
    group = heads // key_cache.shape[2]
    partial = np.zeros((seqs, heads, num_splits, value_cache.shape[3]))
    partial_lse = np.full((seqs, heads, num_splits), -np.inf)
    for s, length in enumerate(seq_lens.tolist()):
        keys, values = _paged(key_cache, block_table[s], length), _paged(value_cache, block_table[s], length)
        for h in range(heads):
            for j, of_split in _splits(length, num_splits):
                scores = _scores(query[s, h], keys[of_split, h // group], sm_scale)
                attention = _softmax_times(scores, values[of_split, h // group])
                partial[s, h, j], partial_lse[s, h, j] = attention.normalised, attention.log_sum_exp
    return partial, partial_lse


def unified_attention_3d(
    query: Array,
    key_cache: Array,
    value_cache: Array,
    block_table: Array,
    cu_seqlens: Array,
    seq_lens: Array,
    sm_scale: float,
    softcap: float,
    sliding_window: int,
    num_segments: int,
    block_size: int,
) -> Results:
    tokens, heads, head_dim = query.shape
    group = heads // key_cache.shape[2]
    acc = np.zeros((tokens, heads, num_segments, head_dim))
    greatest, total = np.full((tokens, heads, num_segments), -np.inf), np.zeros((tokens, heads, num_segments))
    for s, first, end in _sequences(cu_seqlens):
        length = int(seq_lens[s])
        size = block_size * math.ceil(length / (block_size * num_segments))
        keys, values = _paged(key_cache, block_table[s], length), _paged(value_cache, block_table[s], length)
        for token, h, j in np.ndindex(end - first, heads, num_segments):
            position = length - (end - first) + token
            start = max(_first_visible(position, sliding_window), j * size)
            seen = slice(start, min(position + 1, (j + 1) * size))
            if seen.start < seen.stop:
                scores = _capped(_scores(query[first + token, h], keys[seen, h // group], sm_scale), softcap)
                found, place = _softmax_times(scores, values[seen, h // group]), (first + token, h, j)
                acc[place], greatest[place], total[place] = found.acc, found.greatest, found.total
    return acc, greatest, total


# Attention over all keys


def flash_prefill_attention(
    query: Array, key: Array, value: Array, cu_seqlens: Array, sm_scale: float, causal: bool
) -> Results:
    tokens, heads, _ = query.shape
    group = heads // key.shape[1]
    out = np.empty((tokens, heads, value.shape[2]))
    for _, first, end in _sequences(cu_seqlens):
        for token in range(first, end):
            seen = slice(first, token + 1 if causal else end)
            for h in range(heads):
                scores = _scores(query[token, h], key[seen, h // group], sm_scale)
                out[token, h] = _softmax_times(scores, value[seen, h // group]).normalised
    return (out,)


def unified_attention_2d(
    query: Array,
    key_cache: Array,
    value_cache: Array,
    block_table: Array,
    cu_seqlens: Array,
    seq_lens: Array,
    sm_scale: float,
    softcap: float,
    sliding_window: int,
) -> Results:
    out = np.empty_like(query)
    heads = query.shape[1]
    group = heads // key_cache.shape[2]
    for s, first, end in _sequences(cu_seqlens):
        length = int(seq_lens[s])
        keys, values = _paged(key_cache, block_table[s], length), _paged(value_cache, block_table[s], length)
        for token, h in np.ndindex(end - first, heads):
            position = length - (end - first) + token
            seen = slice(_first_visible(position, sliding_window), position + 1)
            scores = _capped(_scores(query[first + token, h], keys[seen, h // group], sm_scale), softcap)
            out[first + token, h] = _softmax_times(scores, values[seen, h // group]).normalised
    return (out,)


def paged_prefix_prefill(
    query: Array,
    key: Array,
    value: Array,
    key_cache: Array,
    value_cache: Array,
    block_table: Array,
    cu_seqlens: Array,
    context_lens: Array,
    sm_scale: float,
    sliding_window: int,
) -> Results:
    out = np.empty_like(query)
    heads = query.shape[1]
    group = heads // key.shape[1]
    for s, first, end in _sequences(cu_seqlens):
        context = int(context_lens[s])
        keys = np.concatenate([_paged(key_cache, block_table[s], context), key[first:end]])
        values = np.concatenate([_paged(value_cache, block_table[s], context), value[first:end]])
        for token, h in np.ndindex(end - first, heads):
            seen = slice(_first_visible(context + token, sliding_window), context + token + 1)
            scores = _scores(query[first + token, h], keys[seen, h // group], sm_scale)
            out[first + token, h] = _softmax_times(scores, values[seen, h // group]).normalised
    return (out,)


def paged_prefix_prefill_alibi(
    query: Array,
    key: Array,
    value: Array,
    key_cache: Array,
    value_cache: Array,
    alibi_slopes: Array,
    block_table: Array,
    cu_seqlens: Array,
    context_lens: Array,
    sm_scale: float,
) -> Results:
    out = np.empty_like(query)
    heads = query.shape[1]
    group = heads // key.shape[1]
    for s, first, end in _sequences(cu_seqlens):
        context = int(context_lens[s])
        keys = np.concatenate([_paged(key_cache, block_table[s], context), key[first:end]])
        values = np.concatenate([_paged(value_cache, block_table[s], context), value[first:end]])
        for token, h in np.ndindex(end - first, heads):
            position = context + token
            distances = np.arange(position + 1) - position
            scores = _scores(query[first + token, h], keys[: position + 1, h // group], sm_scale)
            scores = scores + alibi_slopes[h] * distances
            out[first + token, h] = _softmax_times(scores, values[: position + 1, h // group]).normalised
    return (out,)
