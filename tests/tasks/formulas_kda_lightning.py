"""The operators of Kimi Delta Attention and Lightning Attention, as `formulas` has the others: loops over tokens.

Gates of Kimi Delta Attention are exponents of one channel; only differences of two gates of one chunk are raised.
Decays of Lightning Attention belong to a head and are written as powers of the decay of one token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tests.tasks.formulas import Array, Results


def _chunks(cu_seqlens: Array, chunk_size: int) -> Iterator[tuple[int, int]]:
    """First token and the one after the last of every chunk, in order; sequences are cut from their own start."""
    bounds = cu_seqlens.tolist()
    for start, end in pairwise(bounds):
        for first in range(start, end, chunk_size):
            yield first, min(first + chunk_size, end)


def _decayed_product(left: Array, right: Array, gate: Array, earlier_gate: Array) -> Array:
    """Sum over channels of left * right * exp(gate - earlier gate), all (H, D), for every head: (H,)."""
    return np.asarray((left * right * np.exp(gate - earlier_gate)).sum(axis=1))


# Kimi Delta Attention


def kda_gate(x: Array, a_log: Array, bias: Array | None, softplus_beta: float, threshold: float) -> Results:
    """softplus as max(z, 0) + log(1 + exp(-|z|)), which does not overflow."""
    y = x if bias is None else x + bias[np.newaxis]
    z = softplus_beta * y
    softplus = (np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))) / softplus_beta
    g = np.where(z > threshold, y, softplus)
    for head, of_head in enumerate(a_log):
        g[:, head] *= -math.exp(of_head)
    return (g,)


def kda_dot_kkt_intra(
    query: Array,
    key: Array,
    beta: Array,
    g: Array,
    cu_seqlens: Array,
    kk: Array,
    qk: Array,
    chunk_size: int,
    sub_block: int,
    sm_scale: float,
) -> Results:
    new_kk, new_qk = kk.copy(), qk.copy()
    for first, end in _chunks(cu_seqlens, chunk_size):
        for t in range(first, end):
            i = t - first
            block = i // sub_block * sub_block
            new_kk[t, :, block : block + sub_block] = 0
            new_qk[t, :, block : block + sub_block] = 0
            for c in range(block, i + 1):
                s = first + c
                new_qk[t, :, c] = sm_scale * _decayed_product(query[t], key[s], g[t], g[s])
                if c < i:
                    new_kk[t, :, c] = beta[t] * _decayed_product(key[t], key[s], g[t], g[s])
    return new_kk, new_qk


def kda_dot_kkt_inter(
    query: Array,
    key: Array,
    beta: Array,
    g: Array,
    cu_seqlens: Array,
    kk: Array,
    qk: Array,
    chunk_size: int,
    sub_block: int,
    sm_scale: float,
) -> Results:
    new_kk, new_qk = kk.copy(), qk.copy()
    for first, end in _chunks(cu_seqlens, chunk_size):
        for t in range(first, end):
            for s in range(first, t):
                c = s - first
                if c // sub_block < (t - first) // sub_block:
                    new_kk[t, :, c] = beta[t] * _decayed_product(key[t], key[s], g[t], g[s])
                    new_qk[t, :, c] = sm_scale * _decayed_product(query[t], key[s], g[t], g[s])
    return new_kk, new_qk


def kda_recompute_wu(
    key: Array, value: Array, beta: Array, g: Array, inverse: Array, cu_seqlens: Array, chunk_size: int
) -> Results:
    w, u, kg = np.zeros_like(key), np.zeros_like(value), np.empty_like(key)
    for first, end in _chunks(cu_seqlens, chunk_size):
        for t in range(first, end):
            kg[t] = key[t] * np.exp(g[end - 1] - g[t])
            for s in range(first, t + 1):
                factor = (inverse[t, :, s - first] * beta[s])[:, np.newaxis]
                w[t] += factor * np.exp(g[s]) * key[s]
                u[t] += factor * value[s]
    return w, u, kg


def kda_gla_fwd_o(
    query: Array,
    value: Array,
    g: Array,
    scores: Array,
    states: Array,
    cu_seqlens: Array,
    chunk_size: int,
    sm_scale: float,
) -> Results:
    out = np.empty_like(value)
    for n, (first, end) in enumerate(_chunks(cu_seqlens, chunk_size)):
        for t in range(first, end):
            out[t] = sm_scale * np.einsum("hd,hde->he", query[t] * np.exp(g[t]), states[n])
            for s in range(first, t + 1):
                out[t] += scores[t, :, s - first, np.newaxis] * value[s]
    return (out,)


# Lightning Attention


def lightning_attn_diag(query: Array, key: Array, value: Array, slopes: Array, chunk_size: int) -> Results:
    decay = np.exp(-slopes)
    out = np.zeros_like(value)
    for t in range(query.shape[1]):
        for u in range(t - t % chunk_size, t + 1):
            products = np.einsum("bhd,bhd->bh", query[:, t], key[:, u]) * decay ** (t - u)
            out[:, t] += products[:, :, np.newaxis] * value[:, u]
    return (out,)


def lightning_attn_kv_parallel(key: Array, value: Array, slopes: Array, chunk_size: int) -> Results:
    """Token by token: what the chunk has so far is decayed once before the outer product is added."""
    batch, length, heads, width = key.shape
    decay = np.exp(-slopes)[np.newaxis, :, np.newaxis, np.newaxis]
    kv = np.zeros((batch, heads, -(-length // chunk_size), width, value.shape[3]))
    for t in range(length):
        so_far = kv[:, :, t // chunk_size]
        kv[:, :, t // chunk_size] = decay * so_far + np.einsum("bhd,bhe->bhde", key[:, t], value[:, t])
    return (kv,)


def lightning_attn_kv_reduce(slopes: Array, kv: Array, state: Array, seq_len: int, chunk_size: int) -> Results:
    before, after = np.empty_like(kv), state.copy()
    for chunk in range(kv.shape[2]):
        tokens = min(chunk_size, seq_len - chunk * chunk_size)
        before[:, :, chunk] = after
        for head, slope in enumerate(slopes):
            after[:, head] = math.exp(-slope * tokens) * after[:, head] + kv[:, head, chunk]
    return before, after


def lightning_attn_none_diag(query: Array, slopes: Array, states: Array, out: Array, chunk_size: int) -> Results:
    decay = np.exp(-slopes)
    y = out.copy()
    for t in range(query.shape[1]):
        chunk, i = divmod(t, chunk_size)
        of_state = np.einsum("bhd,bhde->bhe", query[:, t], states[:, :, chunk])
        y[:, t] += (decay ** (i + 1))[np.newaxis, :, np.newaxis] * of_state
    return (y,)
