"""The operators of the delta rule and of gated linear attention, as `formulas` has the others: token by token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tests.tasks.formulas import Array, Results


def _chunks(cu_seqlens: Array, chunk_size: int) -> Iterator[range]:
    """The tokens of every chunk, over all sequences in order; an empty sequence has none."""
    bounds = [int(bound) for bound in cu_seqlens]
    for begin, end in pairwise(bounds):
        for first in range(begin, end, chunk_size):
            yield range(first, min(first + chunk_size, end))


def _group(value_heads: int, key_heads: int) -> int:
    """How many value heads in a row read the same key head."""
    return value_heads // key_heads


# Gates


def _cumulative_sums(g: Array, cu_seqlens: Array, chunk_size: int, reverse: bool, scale: float) -> Array:
    sums = np.empty(g.shape)
    for chunk in _chunks(cu_seqlens, chunk_size):
        total = np.zeros(g.shape[1:])
        for token in reversed(chunk) if reverse else chunk:
            total = total + g[token]
            sums[token] = scale * total
    return sums


def fla_cumsum_scalar(g: Array, cu_seqlens: Array, chunk_size: int, reverse: bool, scale: float) -> Results:
    return (_cumulative_sums(g, cu_seqlens, chunk_size, reverse, scale),)


def fla_cumsum_vector(g: Array, cu_seqlens: Array, chunk_size: int, reverse: bool, scale: float) -> Results:
    return (_cumulative_sums(g, cu_seqlens, chunk_size, reverse, scale),)


def fused_gdn_gating(a: Array, b: Array, a_log: Array, dt_bias: Array) -> Results:
    """With exponentials of negative numbers alone: log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))."""
    shifted = a + dt_bias[np.newaxis, :]
    softplus = np.maximum(shifted, 0.0) + np.log1p(np.exp(-np.abs(shifted)))
    small = np.exp(-np.abs(b))
    return -np.exp(a_log)[np.newaxis, :] * softplus, np.where(b >= 0, 1.0, small) / (1 + small)


# Token by token


def linear_attn_decode(
    query: Array, key: Array, value: Array, slopes: Array, idx_mapping: Array, kv_cache: Array
) -> Results:
    out = np.zeros(value.shape)
    cache = kv_cache.copy()
    for request, slot in enumerate(idx_mapping.tolist()):
        if slot == -1:
            continue
        for head, slope in enumerate(slopes):
            written = key[request, head][:, np.newaxis] * value[request, head][np.newaxis, :]
            cache[slot, head] = math.exp(-slope) * cache[slot, head] + written
            out[request, head] = np.einsum("d,de->e", query[request, head], cache[slot, head])
    return out, cache


def fla_fused_recurrent(
    query: Array,
    key: Array,
    value: Array,
    g: Array | None,
    beta: Array,
    cu_seqlens: Array,
    idx_mapping: Array,
    state: Array,
    sm_scale: float,
    normalize: bool,
    eps: float,
) -> Results:
    out = np.zeros(value.shape)
    states = state.copy()
    heads = value.shape[1]
    group = _group(heads, key.shape[1])
    for sequence, slot in enumerate(idx_mapping.tolist()):
        for t in range(int(cu_seqlens[sequence]), int(cu_seqlens[sequence + 1])):
            for h in range(heads):
                q, k = query[t, h // group], key[t, h // group]
                if normalize:
                    q, k = q / math.sqrt((q * q).sum() + eps), k / math.sqrt((k * k).sum() + eps)
                decay = 1.0 if g is None else math.exp(g[t, h])
                decayed = decay * states[slot, h]
                missing = value[t, h] - np.einsum("de,d->e", decayed, k)
                states[slot, h] = decayed + np.einsum("d,e->de", k, beta[t, h] * missing)
                out[t, h] = sm_scale * np.einsum("de,d->e", states[slot, h], q)
    return out, states


# Chunk by chunk


def fla_chunk_fwd_o(
    query: Array,
    key: Array,
    value: Array,
    states: Array,
    g: Array | None,
    cu_seqlens: Array,
    chunk_size: int,
    sm_scale: float,
) -> Results:
    out = np.zeros(value.shape)
    decays = np.zeros(value.shape[:2]) if g is None else g
    heads = value.shape[1]
    group = _group(heads, key.shape[1])
    for n, chunk in enumerate(_chunks(cu_seqlens, chunk_size)):
        for i in chunk:
            for h in range(heads):
                q = query[i, h // group]
                total = math.exp(decays[i, h]) * np.einsum("d,de->e", q, states[n, h])
                for j in range(chunk.start, i + 1):
                    total += math.exp(decays[i, h] - decays[j, h]) * (q * key[j, h // group]).sum() * value[j, h]
                out[i, h] = sm_scale * total
    return (out,)


def fla_scaled_dot_kkt(key: Array, beta: Array, g: Array | None, cu_seqlens: Array, chunk_size: int) -> Results:
    heads = beta.shape[1]
    group = _group(heads, key.shape[1])
    decays = np.zeros(beta.shape) if g is None else g
    a = np.zeros((len(key), heads, chunk_size))
    for chunk in _chunks(cu_seqlens, chunk_size):
        for i in chunk:
            for h in range(heads):
                for earlier in range(chunk.start, i):
                    product = (key[i, h // group] * key[earlier, h // group]).sum()
                    decay = math.exp(decays[i, h] - decays[earlier, h])
                    a[i, h, earlier - chunk.start] = beta[i, h] * decay * product
    return (a,)


def wy_fast_recompute_wu(
    key: Array, value: Array, beta: Array, g: Array, a: Array, cu_seqlens: Array, chunk_size: int
) -> Results:
    heads = value.shape[1]
    group = _group(heads, key.shape[1])
    w = np.zeros((len(key), heads, key.shape[2]))
    u = np.zeros(value.shape)
    for chunk in _chunks(cu_seqlens, chunk_size):
        for i in chunk:
            for h in range(heads):
                for j in range(chunk.start, i + 1):
                    weight = a[i, h, j - chunk.start] * beta[j, h]
                    u[i, h] += weight * value[j, h]
                    w[i, h] += weight * math.exp(g[j, h]) * key[j, h // group]
    return w, u


# Inverses of triangular matrices


def solve_tril_16x16(a: Array, chunk_size: int) -> Results:
    """Row by row: (I + L) X = I means that X[r] is the unit row r less L[r, j] · X[j] for the rows j above."""
    batch, tokens, heads, _ = a.shape
    inverse = np.zeros((batch, tokens, heads, 16))
    for n in range(batch):
        for t in range(tokens):
            row, column = t % 16, 16 * ((t % chunk_size) // 16)
            for h in range(heads):
                inverse[n, t, h, row] = 1.0
                for j in range(row):
                    inverse[n, t, h] -= a[n, t, h, column + j] * inverse[n, t - row + j, h]
    return (inverse,)


def _merged(a: Array, d: Array) -> Array:
    """The inverse for one run of tokens: a (size, size), and the inverses d (size, 16) of its diagonal blocks."""
    size = len(a)
    places = [slice(first, first + 16) for first in range(0, size, 16)]
    x = np.zeros((size, size))
    for i, rows in enumerate(places):
        of_block = np.array([[d[rows][r, c] if c <= r else 0.0 for c in range(16)] for r in range(16)])
        x[rows, rows] = of_block
        for j in range(i):
            total = np.zeros((16, 16))
            for k in range(j, i):
                total += np.einsum("rm,mc->rc", a[rows, places[k]], x[places[k], places[j]])
            x[rows, places[j]] = -np.einsum("rm,mc->rc", of_block, total)
    return x


def _merge(a: Array, diag_inverse: Array, size: int) -> Array:
    batch, tokens, heads, _ = a.shape
    inverse = np.empty((batch, tokens, heads, size))
    for n in range(batch):
        for h in range(heads):
            for first in range(0, tokens, size):
                end = min(first + size, tokens)
                matrix, blocks = np.zeros((size, size)), np.zeros((size, 16))
                matrix[: end - first] = a[n, first:end, h]
                blocks[: end - first] = diag_inverse[n, first:end, h]
                inverse[n, first:end, h] = _merged(matrix, blocks)[: end - first]
    return inverse


def merge_16x16_to_32x32(a: Array, diag_inverse: Array) -> Results:
    return (_merge(a, diag_inverse, 32),)


def merge_16x16_to_64x64(a: Array, diag_inverse: Array) -> Results:
    return (_merge(a, diag_inverse, 64),)
