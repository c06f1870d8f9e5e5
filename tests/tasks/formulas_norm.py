"""The operators of normalization, with and without gates and gradients, as `formulas` has the others: row by row."""

from __future__ import annotations

import math

import numpy as np

from tests.tasks.formulas import Array, Results


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _mean(row: Array) -> float:
    return float(row.sum() / len(row))


def _normalized(row: Array, eps: float, root_mean_square: bool) -> tuple[Array, float]:
    """The row, less its mean unless by root mean square, times its factor; and the factor."""
    centred = row if root_mean_square else row - _mean(row)
    factor = 1 / math.sqrt(_mean(centred * centred) + eps)
    return centred * factor, factor


# Forward


def mean(x: Array) -> Results:
    y = np.zeros((x.shape[0], x.shape[2]))
    for k in range(x.shape[1]):
        y += x[:, k] / x.shape[1]
    return (y,)


def log_softmax(x: Array) -> Results:
    y = np.empty_like(x)
    for m, row in enumerate(x):
        shifted = row - row.max()
        y[m] = shifted - math.log(np.exp(shifted).sum())
    return (y,)


def fla_l2norm(x: Array, eps: float) -> Results:
    rstd = np.array([1 / math.sqrt((row * row).sum() + eps) for row in x])
    return x * rstd[:, np.newaxis], rstd


def rmsnorm_fwd(x: Array, weight: Array, eps: float, zero_centered: bool) -> Results:
    y, rstd = np.empty(x.shape), np.empty(len(x))
    for m, row in enumerate(x):
        normalized, rstd[m] = _normalized(row, eps, root_mean_square=True)
        y[m] = normalized * (1 + weight if zero_centered else weight)
    return y, rstd


def layernorm_gated(
    x: Array,
    z: Array | None,
    weight: Array,
    bias: Array | None,
    group_size: int,
    eps: float,
    norm_before_gate: bool,
    rms_norm: bool,
) -> Results:
    u = x if z is None or norm_before_gate else x * _silu(z)
    y, rstd = np.empty(x.shape), np.empty((len(x), x.shape[1] // group_size))
    for m, row in enumerate(u):
        for group in range(rstd.shape[1]):
            of_group = slice(group * group_size, (group + 1) * group_size)
            y[m, of_group], rstd[m, group] = _normalized(row[of_group], eps, rms_norm)
    y = y * weight + (0.0 if bias is None else bias)
    if z is not None and norm_before_gate:
        y = y * _silu(z)
    return y, rstd


def fla_layernorm_gated(
    x: Array, gate: Array, weight: Array, bias: Array | None, eps: float, sigmoid_gate: bool, rms_norm: bool
) -> Results:
    y = np.empty(x.shape)
    for token, head in np.ndindex(*x.shape[:2]):
        normalized, _ = _normalized(x[token, head], eps, rms_norm)
        affine = normalized * weight + (0.0 if bias is None else bias)
        of_gate = gate[token, head]
        y[token, head] = affine * (_sigmoid(of_gate) if sigmoid_gate else _silu(of_gate))
    return (y,)


def fla_layernorm(
    x: Array, gate: Array | None, weight: Array | None, bias: Array | None, residual: Array, eps: float
) -> Results:
    u = x + residual
    y, means, rstd = np.empty(x.shape), np.empty(len(x)), np.empty(len(x))
    for m, row in enumerate(u):
        means[m] = _mean(row)
        normalized, rstd[m] = _normalized(row, eps, root_mean_square=False)
        y[m] = normalized * (1.0 if weight is None else weight) + (0.0 if bias is None else bias)
        if gate is not None:
            y[m] *= _silu(gate[m])
    return y, means, rstd, u


# With gradients


def layernorm(x: Array, weight: Array, bias: Array, dy: Array, eps: float) -> Results:
    y, means, rstd, dx = np.empty(x.shape), np.empty(len(x)), np.empty(len(x)), np.empty(x.shape)
    dweight, dbias = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for m, row in enumerate(x):
        means[m] = _mean(row)
        h, rstd[m] = _normalized(row, eps, root_mean_square=False)
        y[m] = h * weight + bias
        g = dy[m] * weight
        dx[m] = rstd[m] * (g - _mean(g) - h * _mean(g * h))
        dweight += dy[m] * h
        dbias += dy[m]
    return y, means, rstd, dx, dweight, dbias


def rmsnorm_bwd(dy: Array, x: Array, weight: Array, eps: float) -> Results:
    dx, dweight = np.empty(x.shape), np.zeros(x.shape[1])
    for m, row in enumerate(x):
        r = 1 / math.sqrt(eps + _mean(row * row))
        g = dy[m] * weight
        dx[m] = r * (g - row * r**2 * _mean(g * row))
        dweight += dy[m] * row * r
    return dx, dweight
