"""The operators of state-space models, as `formulas` has the others: loops over sequences, chunks, tokens and heads."""

from __future__ import annotations

import numpy as np

from tests.tasks.formulas import Array, Results


def _gated(v: Array) -> Array:
    """v times its logistic function."""
    return np.asarray(v / (1 + np.exp(-v)))


def _softplus(v: Array) -> Array:
    """log(1 + exp(v)), with an exponential of negative numbers alone."""
    return np.asarray(np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v))))


def _last_tokens(seq_len: int, chunk_size: int) -> list[int]:
    """The last token of every chunk of a row; the last chunk may be short."""
    return [min(first + chunk_size, seq_len) - 1 for first in range(0, seq_len, chunk_size)]


def _ids_before(ids: Array, chunk_size: int) -> Array:
    """For every chunk of a row, the id of the token before it; the row's first id for the first chunk."""
    lasts = _last_tokens(len(ids), chunk_size)
    return np.asarray([ids[0], *(ids[last] for last in lasts[:-1])])


# Convolutions over time


def causal_conv1d_fwd(
    x: Array,
    weight: Array,
    bias: Array | None,
    cu_seqlens: Array,
    idx_mapping: Array,
    has_initial_state: Array,
    conv_state: Array,
    silu: bool,
) -> Results:
    width = weight.shape[1]
    y, states = np.empty_like(x), conv_state.copy()
    for s, slot in enumerate(idx_mapping.tolist()):
        begin, end = int(cu_seqlens[s]), int(cu_seqlens[s + 1])
        before = conv_state[slot] if has_initial_state[s] else np.zeros_like(conv_state[slot])
        padded = [*before, *x[begin:end]]
        for t in range(end - begin):
            v = np.zeros(x.shape[1]) if bias is None else bias.copy()
            for j in range(width):
                v += weight[:, j] * padded[t + j]
            y[begin + t] = _gated(v) if silu else v
        states[slot] = padded[len(padded) - (width - 1) :]
    return y, states


def causal_conv1d_update(
    x: Array, weight: Array, bias: Array | None, idx_mapping: Array, conv_state: Array, silu: bool
) -> Results:
    width = weight.shape[1]
    y, states = np.zeros_like(x), conv_state.copy()
    for s, slot in enumerate(idx_mapping.tolist()):
        if slot == -1:
            continue
        rows = [*conv_state[slot], x[s]]
        v = np.zeros(x.shape[1]) if bias is None else bias.copy()
        for back in range(width):
            v += weight[:, width - 1 - back] * rows[len(rows) - 1 - back]
        y[s] = _gated(v) if silu else v
        states[slot] = rows[1:]
    return y, states


# One step of the recurrence


def selective_scan_update(
    x: Array,
    dt: Array,
    dt_bias: Array | None,
    A: Array,
    B: Array,
    C: Array,
    D: Array | None,
    z: Array | None,
    idx_mapping: Array,
    state: Array,
    dt_softplus: bool,
) -> Results:
    out, states = np.zeros_like(x), state.copy()
    num_heads, num_groups = x.shape[1], B.shape[1]
    for s, slot in enumerate(idx_mapping.tolist()):
        if slot == -1:
            continue
        for h in range(num_heads):
            g = h // (num_heads // num_groups)
            d = dt[s, h] if dt_bias is None else dt[s, h] + dt_bias[h]
            d = _softplus(d) if dt_softplus else d
            kept = np.exp(d[:, np.newaxis] * A[h]) * state[slot, h]
            new = kept + np.einsum("p,n,p->pn", d, B[s, g], x[s, h])
            v = np.einsum("pn,n->p", new, C[s, g])
            if D is not None:
                v = v + D[h] * x[s, h]
            out[s, h] = v if z is None else v * _gated(z[s, h])
            states[slot, h] = new
    return out, states


# The scan of Mamba-2, chunk by chunk


def ssd_bmm(a: Array, b: Array, causal: bool, chunk_size: int) -> Results:
    batch, seq_len, groups, _ = a.shape
    lasts = _last_tokens(seq_len, chunk_size)
    out = np.zeros((batch, len(lasts), groups, chunk_size, chunk_size))
    for c, last in enumerate(lasts):
        first = c * chunk_size
        for m in range(last - first + 1):
            for k in range(m + 1 if causal else last - first + 1):
                out[:, c, :, m, k] = np.einsum("rgn,rgn->rg", a[:, first + m], b[:, first + k])
    return (out,)


def ssd_chunk_cumsum(
    dt: Array,
    A: Array,
    dt_bias: Array | None,
    dt_softplus: bool,
    dt_min: float,
    dt_max: float,
    chunk_size: int,
) -> Results:
    batch, seq_len, heads = dt.shape
    steps = np.zeros((batch, heads, len(_last_tokens(seq_len, chunk_size)), chunk_size))
    for t in range(seq_len):
        v = dt[:, t] if dt_bias is None else dt[:, t] + dt_bias
        v = _softplus(v) if dt_softplus else v
        steps[:, :, t // chunk_size, t % chunk_size] = np.minimum(np.maximum(v, dt_min), dt_max)
    sums = np.empty_like(steps)
    total = np.zeros(steps.shape[:3])
    for i in range(chunk_size):
        total = total + steps[..., i] * A[np.newaxis, :, np.newaxis]
        sums[..., i] = total
    return steps, sums


def ssd_chunk_state(x: Array, dt: Array, dA_cumsum: Array, B: Array, seq_idx: Array | None, chunk_size: int) -> Results:
    batch, seq_len, heads, head_dim = x.shape
    groups, state_dim = B.shape[2:]
    lasts = _last_tokens(seq_len, chunk_size)
    states = np.zeros((batch, len(lasts), heads, head_dim, state_dim))
    for b, c, h in np.ndindex(batch, len(lasts), heads):
        a, d, last = dA_cumsum[b, h, c], dt[b, h, c], lasts[c]
        for t in range(c * chunk_size, last + 1):
            if seq_idx is not None and seq_idx[b, t] != seq_idx[b, last]:
                continue
            k = t - c * chunk_size
            factor = np.exp(a[last - c * chunk_size] - a[k]) * d[k]
            states[b, c, h] += factor * np.outer(x[b, t, h], B[b, t, h // (heads // groups)])
    return (states,)


def ssd_chunk_state_varlen(
    x: Array,
    dt: Array,
    dA_cumsum: Array,
    B: Array,
    prev_states: Array,
    initial_states: Array,
    cu_seqlens: Array,
    chunk_size: int,
) -> Results:
    heads, groups = x.shape[1], B.shape[1]
    states = initial_states.copy()
    for s, h in np.ndindex(len(states), heads):
        begin, end = int(cu_seqlens[s]), int(cu_seqlens[s + 1]) - 1
        if end < begin:
            continue
        c = end // chunk_size
        base = c * chunk_size
        a, d = dA_cumsum[h, c], dt[h, c]
        if begin < base:
            total = np.exp(a[end - base]) * prev_states[c, h]
        else:
            decay_before = 0.0 if begin == base else a[begin - base - 1]
            total = np.exp(a[end - base] - decay_before) * initial_states[s, h]
        for t in range(max(begin, base), end + 1):
            factor = np.exp(a[end - base] - a[t - base]) * d[t - base]
            total = total + factor * np.outer(x[t, h], B[t, h // (heads // groups)])
        states[s, h] = total
    return (states,)


def ssd_state_passing(
    states: Array,
    dA_cumsum: Array,
    initial_states: Array | None,
    seq_idx: Array | None,
    seq_len: int,
    chunk_size: int,
) -> Results:
    batch, chunks, heads = states.shape[:3]
    lasts = _last_tokens(seq_len, chunk_size)
    previous, final = np.empty_like(states), np.empty_like(states[:, 0])
    for b, h in np.ndindex(batch, heads):
        carried = np.zeros(states.shape[3:]) if initial_states is None else initial_states[b, h]
        for c in range(chunks):
            previous[b, c, h] = carried
            goes_on = seq_idx is None or _ids_before(seq_idx[b], chunk_size)[c] == seq_idx[b, lasts[c]]
            kept = np.exp(dA_cumsum[b, h, c, chunk_size - 1]) * carried if goes_on else np.zeros_like(carried)
            carried = kept + states[b, c, h]
        final[b, h] = carried
    return previous, final


def ssd_chunk_scan(
    x: Array,
    dt: Array,
    dA_cumsum: Array,
    C: Array,
    CB: Array,
    prev_states: Array,
    D: Array | None,
    z: Array | None,
    seq_idx: Array | None,
    chunk_size: int,
) -> Results:
    batch, seq_len, heads, _ = x.shape
    out = np.empty_like(x)
    for b in range(batch):
        ids = np.zeros(seq_len, dtype=np.int64) if seq_idx is None else seq_idx[b]
        ids_before = _ids_before(ids, chunk_size)
        for t, h in np.ndindex(seq_len, heads):
            g = h // (heads // C.shape[2])
            c, m = divmod(t, chunk_size)
            a, d, first = dA_cumsum[b, h, c], dt[b, h, c], c * chunk_size
            y = np.zeros(x.shape[3])
            if ids[t] == ids_before[c]:
                y += np.exp(a[m]) * np.einsum("n,pn->p", C[b, t, g], prev_states[b, c, h])
            of_sequence = [k for k in range(m + 1) if ids[first + k] == ids[t]]
            factors = [CB[b, c, g, m, k] * np.exp(a[m] - a[k]) * d[k] for k in of_sequence]
            y += np.einsum("k,kp->p", np.asarray(factors), x[b, first + of_sequence[0] : t + 1, h])
            if D is not None:
                y += D[h] * x[b, t, h]
            out[b, t, h] = y if z is None else y * _gated(z[b, t, h])
    return (out,)
