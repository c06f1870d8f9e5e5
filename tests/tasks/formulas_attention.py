"""The operators of attention, as `formulas` has the others: softmaxes by hand, loops over samples, heads and tokens."""

from __future__ import annotations

import math

import numpy as np

from tests.tasks.formulas import Array, Results


def _weights(scores: Array) -> Array:
    """Softmax of the scores of one query."""
    exponentials = np.exp(scores - scores.max())
    return np.asarray(exponentials / exponentials.sum())


def _channels(weight: Array, of_map: Array, bias: Array | None = None) -> Array:
    """A 1×1 convolution of one map (C, N): the same product at every position."""
    mapped = np.einsum("dc,cn->dn", weight, of_map)
    return np.asarray(mapped if bias is None else mapped + bias[:, np.newaxis])


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


def multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    query_weight: Array,
    query_bias: Array,
    key_weight: Array,
    value_weight: Array,
    value_bias: Array,
    output_weight: Array,
    output_bias: Array,
    H: int,
    D: int,
) -> Results:
    y = np.empty_like(query)
    for sample in range(len(query)):
        q = np.einsum("le,oe->lo", query[sample], query_weight) + query_bias
        k = np.einsum("se,oe->so", key[sample], key_weight)
        v = np.einsum("se,oe->so", value[sample], value_weight) + value_bias
        heads = np.empty_like(q)
        for head in range(H):
            of_head = slice(head * D, (head + 1) * D)
            for row in range(len(q)):
                scores = np.einsum("sd,d->s", k[:, of_head], q[row, of_head]) / math.sqrt(D)
                if mask is not None:
                    scores[~mask[sample, row]] = -1e9
                heads[row, of_head] = np.einsum("s,sd->d", _weights(scores), v[:, of_head])
        y[sample] = np.einsum("le,oe->lo", heads, output_weight) + output_bias
    return (y,)


def item_query_attention(
    support: Array, query: Array, support_weight: Array, query_weight: Array, bias: Array, score_weight: Array
) -> Results:
    episodes, sets, items, features = support.shape
    y = np.empty((episodes, query.shape[1], sets, features))
    for b in range(episodes):
        for q, asked in enumerate(query[b]):
            of_query = np.einsum("ad,d->a", query_weight, asked) + bias
            for n in range(sets):
                scores = np.empty(items)
                for k, item in enumerate(support[b, n]):
                    hidden = np.tanh(np.einsum("ad,d->a", support_weight, item) + of_query)
                    scores[k] = (score_weight * hidden).sum()
                y[b, q, n] = np.einsum("k,kd->d", _weights(scores), support[b, n])
    return (y,)


def nonlocal_attention_dot(
    x: Array,
    theta_weight: Array,
    theta_bias: Array,
    phi_weight: Array,
    phi_bias: Array,
    g_weight: Array,
    g_bias: Array,
    out_weight: Array,
    out_bias: Array,
) -> Results:
    y = np.empty_like(x)
    positions = x.shape[2]
    for b, of_map in enumerate(x):
        theta = _elu(_channels(theta_weight, of_map, theta_bias))
        phi = _elu(_channels(phi_weight, of_map, phi_bias))
        g = _elu(_channels(g_weight, of_map, g_bias))
        attention = np.einsum("di,dj->ij", theta, phi) / positions
        y[b] = of_map + _channels(out_weight, np.einsum("ij,dj->di", attention, g), out_bias)
    return (y,)


def nonlocal_attention_gaussian(
    x: Array,
    theta_weight: Array,
    theta_bias: Array,
    phi_weight: Array,
    g_weight: Array,
    g_bias: Array,
    out_weight: Array,
    out_bias: Array,
) -> Results:
    y = np.empty_like(x)
    for b, of_map in enumerate(x):
        theta, phi = _channels(theta_weight, of_map, theta_bias), _channels(phi_weight, of_map)
        g = _channels(g_weight, of_map, g_bias)
        attended = np.empty_like(g)
        for i in range(x.shape[2]):
            attended[:, i] = np.einsum("j,dj->d", _weights(np.einsum("d,dj->j", theta[:, i], phi)), g)
        y[b] = of_map + _channels(out_weight, attended, out_bias)
    return (y,)


def chunked_prefill_paged_decode(
    query: Array,
    key_cache: Array,
    value_cache: Array,
    block_table: Array,
    seq_lens: Array,
    sm_scale: float,
    block_size: int,
    num_heads: int,
    num_kv_heads: int,
) -> Results:
    out = np.empty_like(query)
    for s, length in enumerate(seq_lens.tolist()):
        places = [(int(block_table[s, t // block_size]), t % block_size) for t in range(length)]
        for head in range(num_heads):
            kv_head = head // (num_heads // num_kv_heads)
            keys = np.stack([key_cache[block, place, kv_head] for block, place in places])
            values = np.stack([value_cache[block, place, kv_head] for block, place in places])
            weights = _weights(sm_scale * np.einsum("td,d->t", keys, query[s, head]))
            out[s, head] = np.einsum("t,td->d", weights, values)
    return (out,)
