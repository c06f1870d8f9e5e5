"""The simplest fundamental operators, as `formulas` has the others: copies, maxima and softmaxes, row by row."""

from __future__ import annotations

import math

import numpy as np

from tests.tasks.formulas import DTYPES, Array, Results


def add(x: Array, y: Array) -> Results:
    return (x + y,)


def subtract(x: Array, y: Array) -> Results:
    return (x - y,)


def load_reduce(x: Array) -> Results:
    greatest = np.empty(len(x))
    for m, row in enumerate(x):
        greatest[m] = max(row.tolist())
    return (greatest,)


def block_copy(x: Array, rows: int, columns: int, top: int, left: int, padding: float, dtype: object) -> Results:
    rounded = np.asarray(padding).astype(DTYPES[str(dtype)]).astype(np.float64)
    out = np.full((rows, columns), rounded)
    for i in range(rows):
        for j in range(columns):
            if 0 <= i + top < x.shape[0] and 0 <= j + left < x.shape[1]:
                out[i, j] = x[i + top, j + left]
    return (out,)


def reverse_range(x: Array) -> Results:
    y = np.empty_like(x)
    length = x.shape[1]
    for i in range(length):
        y[:, i] = x[:, length - 1 - i]
    return (y,)


def swizzle2d(M: int, N: int, group: int) -> Results:
    order = np.full((M, N), -1, dtype=np.int32)
    for n in range(M * N):
        g = n // (group * N)
        first_row = g * group
        height = min(M - first_row, group)
        k = n - g * group * N
        order[first_row + k % height, k // height] = n
    return (order,)


def naive_softmax(x: Array) -> Results:
    y = np.empty(x.shape)
    for m, row in enumerate(x):
        exponentials = np.array([0.0 if value == -math.inf else math.exp(value - row.max()) for value in row])
        y[m] = exponentials / exponentials.sum()
    return (y,)


def online_softmax(x: Array, scale: float) -> Results:
    y = np.empty(x.shape)
    peak, total = np.empty(len(x)), np.empty(len(x))
    for m, row in enumerate(x):
        scaled = scale * row
        peak[m] = scaled.max()
        total[m] = np.exp(scaled - peak[m]).sum()
        y[m] = np.exp(scaled - peak[m]) / total[m]
    return y, peak, total
