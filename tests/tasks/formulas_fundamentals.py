"""The fundamental operators that multiply, sort or draw, as `formulas` has the others; Philox is written out."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from tests.tasks.formulas import DTYPES, Array, Results


def _rounded(x: Array, dtype: DTypeLike) -> Array:
    """To a dtype and back to float64."""
    return np.asarray(x.astype(np.float64).astype(dtype).astype(np.float64))


def _product(a: Array, b: Array) -> Array:
    """Sum over k of a (M, K) times b (K, N), one outer product at a time."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total += a[:, k, np.newaxis] * b[np.newaxis, k, :]
    return total


# Matrix products of one kind of operand


def batched_vecmat(x: Array, weight: Array) -> Results:
    y = np.zeros((weight.shape[0], weight.shape[2]))
    for b, vector in enumerate(x):
        for k, value in enumerate(vector):
            y[b] += value * weight[b, k]
    return (y,)


def small_dot(x: Array, y: Array) -> Results:
    return (np.stack([_product(left, right) for left, right in zip(x, y, strict=True)]),)


def single_tile_gemm(query: Array, key: Array, bias: Array, sm_scale: float) -> Results:
    windows, heads, tokens, _ = query.shape
    out = np.empty((windows, heads, tokens, tokens))
    for w in range(windows):
        for h in range(heads):
            out[w, h] = bias[h] + sm_scale * _product(query[w, h], key[w, h].T)
    return (out,)


def chained_matmul(a: Array, b: Array, c: Array) -> Results:
    return (_product(_product(a, b), c),)


def iv_dependent_matmul(a: Array, b: Array, block_ids: Array) -> Results:
    out = np.zeros((a.shape[0], b.shape[2]))
    for block in block_ids.tolist():
        out += _product(a[:, block, :], b[block])
    return (out,)


def block_pointer_matmul(a: Array, b: Array, c: Array, alpha: float, beta: float) -> Results:
    """Where beta is 0, c does not count, whatever it holds."""
    product = alpha * _product(a, b)
    return (product if beta == 0 else product + beta * c,)


def gemm(a: Array, b: Array, a_scales: Array | None, b_scales: Array | None, leaky_relu: bool, alpha: float) -> Results:
    s = _product(a, b)
    if a_scales is not None:
        s = s * a_scales[:, np.newaxis]
    if b_scales is not None:
        s = s * b_scales[np.newaxis, :]
    return (np.where(s > 0, s, alpha * s) if leaky_relu else s,)


def gemm_fusion(x: Array, down: Array, up: Array) -> Results:
    z = _product(x, down.T)
    return (_product(z / (1 + np.exp(-z)), up.T),)


def small_m_gemm_dot(x: Array, weight: Array, bias: Array | None) -> Results:
    product = _product(x, weight.T)
    return (product if bias is None else product + bias[np.newaxis, :],)


def small_m_gemm_multreduce(x: Array, weight: Array, residual: Array) -> Results:
    return (residual + _product(x, weight),)


def descriptor_store_gemm(a: Array, b: Array, residual: Array) -> Results:
    return (residual + _product(a, b.T),)


# Matrix products of narrow or mixed operands


def cast_matmul(a: Array, b: Array, dtype: object) -> Results:
    to = DTYPES[str(dtype)]
    return (_product(_rounded(a, to), _rounded(b, to)),)


def moe_gemm(x: Array, weight: Array, scales: Array, row_weights: Array | None, expert_offsets: Array) -> Results:
    out = np.empty((x.shape[0], weight.shape[1]))
    for expert in range(weight.shape[0]):
        for row in range(int(expert_offsets[expert]), int(expert_offsets[expert + 1])):
            product = scales[expert] * np.einsum("k,nk->n", x[row], weight[expert].astype(np.float64))
            out[row] = product if row_weights is None else row_weights[row] * product
    return (out,)


def _e4m3(byte: int) -> float:
    """Value of a byte of float8_e4m3fn that is no NaN."""
    sign, exponent, mantissa = byte >> 7, byte >> 3 & 15, byte & 7
    magnitude = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -magnitude if sign else magnitude


def _e2m1(half: int) -> float:
    """Value of four bits: a sign and one of eight magnitudes."""
    magnitude = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[half & 7]
    return -magnitude if half & 8 else magnitude


def _microscaled(stored: Array, scales: Array, bits: int) -> Array:
    """Values of an operand of rows along k, with a power of two for every 32 of them."""
    rows = []
    for row, of_row in zip(stored.tolist(), scales.tolist(), strict=True):
        elements = [_e4m3(byte) for byte in row]
        if bits == 4:
            elements = [_e2m1(half) for byte in row for half in (byte & 15, byte >> 4)]
        rows.append([element * 2.0 ** (of_row[k // 32] - 127) for k, element in enumerate(elements)])
    return np.array(rows)


def matmul_mxfp(a: Array, b: Array, a_scales: Array, b_scales: Array, a_bits: int, b_bits: int) -> Results:
    return (_product(_microscaled(a, a_scales, a_bits), _microscaled(b, b_scales, b_bits).T),)


def chained_dot_fp8(query: Array, key: Array, value: Array, sm_scale: float, out_scale: float, fp8: object) -> Results:
    dtype, largest = ml_dtypes.float8_e4m3fn, 448.0
    if str(fp8) == "torch.float8_e4m3fnuz":
        dtype, largest = ml_dtypes.float8_e4m3fnuz, 240.0
    out = np.empty((*query.shape[:2], value.shape[2]))
    for problem in range(len(query)):
        s = sm_scale * _product(query[problem], key[problem].T)
        s = _rounded(np.minimum(np.maximum(s, -largest), largest), dtype)
        out[problem] = out_scale * _product(s, value[problem])
    return (out,)


# Attention and sorting


def flash_attention_fwd(query: Array, key: Array, value: Array, sm_scale: float, causal: bool) -> Results:
    batch, num_heads, seq_len, _ = query.shape
    group = num_heads // key.shape[1]
    out, lse = np.empty_like(query), np.empty((batch, num_heads, seq_len))
    for b in range(batch):
        for h in range(num_heads):
            for i in range(seq_len):
                end = i + 1 if causal else seq_len
                keys, values = key[b, h // group, :end], value[b, h // group, :end]
                scores = sm_scale * np.einsum("jd,d->j", keys, query[b, h, i])
                greatest = scores.max()
                exponentials = np.exp(scores - greatest)
                out[b, h, i] = np.einsum("j,jd->d", exponentials / exponentials.sum(), values)
                lse[b, h, i] = greatest + math.log(exponentials.sum())
    return out, lse


def bitonic_sort(x: Array, descending: bool) -> Results:
    rows = [sorted(row, reverse=descending) for row in x.tolist()]
    return (np.array(rows, dtype=x.dtype),)


# Random numbers

_WORD = 2**32


def _philox(seed: int, counter: int) -> tuple[int, int, int, int]:
    """The four words of Philox 4x32-10 for a counter (counter, 0, 0, 0), in integers of any size.

    Multipliers and increments of the key are those of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
    """
    key0, key1 = seed % _WORD, seed // _WORD % _WORD
    c0, c1, c2, c3 = counter % _WORD, 0, 0, 0
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, _WORD)
        high1, low1 = divmod(0xCD9E8D57 * c2, _WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0, key1 = (key0 + 0x9E3779B9) % _WORD, (key1 + 0xBB67AE85) % _WORD
    return c0, c1, c2, c3


def _unit(word: int) -> float:
    """A word as a number in [0, 1)."""
    signed = word - _WORD if word >= _WORD // 2 else word
    return 4.6566127342e-10 * (signed if signed >= 0 else -signed - 1)


def _normal_pair(first: int, second: int) -> list[float]:
    """Two normal numbers of two words, by the method of Box and Muller."""
    radius = math.sqrt(-2 * math.log(max(1e-7, _unit(first))))
    angle = 2 * math.pi * _unit(second)
    return [radius * math.cos(angle), radius * math.sin(angle)]


def philox_randn(seeds: Array, N: int, mean: float, std: float) -> Results:
    out = np.empty((len(seeds), N))
    for m, seed in enumerate(seeds.tolist()):
        numbers: list[float] = []
        for block in range(-(-N // 4)):
            w0, w1, w2, w3 = _philox(seed, block)
            numbers += _normal_pair(w0, w1) + _normal_pair(w2, w3)
        out[m] = mean + std * np.array(numbers[:N])
    return (out,)


def philox_randint(seeds: Array, N: int, low: int, high: int, offset: int) -> Results:
    out = np.empty((len(seeds), N), dtype=np.int32)
    for m, seed in enumerate(seeds.tolist()):
        numbers: list[int] = []
        for block in range(-(-N // 4)):
            numbers += [low + word * (high - low) // _WORD for word in _philox(seed, offset + block)]
        out[m] = numbers[:N]
    return (out,)
