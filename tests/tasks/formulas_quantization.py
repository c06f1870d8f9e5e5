"""The operators of suite quantization, as `formulas` has the others.

Codes are made in float32, as the tasks say: a quotient in float64 may fall on the other side of a tie.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tests.tasks.formulas import Array, Results

Fp8 = tuple[Any, np.float32]
"""An 8-bit format of numpy, and the largest number in it."""


def _format(fp8: object) -> Fp8:
    """The format of a dtype of PyTorch, by its name."""
    return {
        "torch.float8_e4m3fn": (ml_dtypes.float8_e4m3fn, np.float32(448)),
        "torch.float8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, np.float32(240)),
    }[str(fp8)]


def _fp8(values: Array, scale: np.float32, fp8: Fp8) -> Array:
    """Float32 quotients, clamped and rounded to 8 bits, as numbers in float64."""
    dtype, largest = fp8
    quotients = np.clip(values.astype(np.float32) / scale, -largest, largest)
    return np.asarray(quotients.astype(dtype).astype(np.float64))


def _scale(values: Array, eps: float, code: float, power_of_two: bool = False) -> np.float32:
    """The scale by which the largest magnitude becomes `code`; on request the next power of two that is not below."""
    scale = np.float32(max(np.abs(values).max(), eps)) / np.float32(code)
    if power_of_two:
        fraction, exponent = math.frexp(scale)  # scale = fraction * 2**exponent with 0.5 <= fraction < 1
        return np.float32(math.ldexp(1.0, exponent - 1 if fraction == 0.5 else exponent))
    return np.float32(scale)


def _fp8_groups(token: Array, group_size: int, eps: float, fp8: Fp8, power_of_two: bool = False) -> tuple[Array, Array]:
    """Codes and scales of the groups of one token."""
    codes, scales = np.empty(len(token)), np.empty(len(token) // group_size)
    for group in range(len(scales)):
        of_group = slice(group * group_size, (group + 1) * group_size)
        scale = _scale(token[of_group], eps, float(fp8[1]), power_of_two)
        scales[group] = scale
        codes[of_group] = _fp8(token[of_group], scale, fp8)
    return codes, scales


def _silu(v: Array) -> Array:
    return np.asarray(v / (1 + np.exp(-v)))


def _nibbles(words: Array) -> Array:
    """The eight numbers of four bits in every int32, in the order of the columns that AWQ gives them."""
    numbers = np.empty((words.shape[0], 8 * words.shape[1]))
    unsigned = words.astype(np.int64) & 0xFFFFFFFF
    for n in range(numbers.shape[1]):
        first_bit = 4 * (n % 8 // 2) + 16 * (n % 2)
        numbers[:, n] = (unsigned[:, n // 8] >> first_bit) & 15
    return numbers


def awq_dequantize(qweight: Array, scales: Array, qzeros: Array, group_size: int) -> Results:
    codes, zeros = _nibbles(qweight), _nibbles(qzeros)
    out = np.empty_like(codes)
    for k in range(len(codes)):
        out[k] = (codes[k] - zeros[k // group_size]) * scales[k // group_size]
    return (out,)


def per_token_group_quant_fp8(x: Array, group_size: int, eps: float, fp8: object) -> Results:
    tokens = [_fp8_groups(token, group_size, eps, _format(fp8)) for token in x]
    return np.stack([codes for codes, _ in tokens]), np.stack([scales for _, scales in tokens])


def per_token_group_quant_fp8_colmajor(x: Array, group_size: int, eps: float, use_ue8m0: bool, fp8: object) -> Results:
    tokens = [_fp8_groups(token, group_size, eps, _format(fp8), use_ue8m0) for token in x]
    return np.stack([codes for codes, _ in tokens]), np.stack([scales for _, scales in tokens])


def per_token_quant_int8(x: Array, eps: float) -> Results:
    codes, scales, sums = np.empty_like(x), np.empty(len(x)), np.empty(len(x))
    for t, values in enumerate(x):
        scale = _scale(values, eps, 127)
        codes[t] = np.clip(np.rint(values.astype(np.float32) / scale), -128, 127)
        scales[t] = scale
        sums[t] = math.fsum(values)
    return codes, scales, sums


def scale_swizzle(scales: Array) -> Results:
    batch, rows, columns = scales.shape
    row_tiles, column_tiles = -(-rows // 128), -(-columns // 4)
    out = np.zeros((batch, 512 * row_tiles * column_tiles), dtype=scales.dtype)
    for r in range(rows):
        for c in range(columns):
            tile = 512 * (r // 128 * column_tiles + c // 4)
            out[:, tile + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4] = scales[:, r, c]
    return (out,)


def silu_mul_fp8_quant_dg(
    x: Array,
    expert_num_tokens: Array,
    q: Array,
    scales: Array,
    group_size: int,
    eps: float,
    use_ue8m0: bool,
    fp8: object,
) -> Results:
    codes, of_groups = q.copy(), scales.copy()
    half = q.shape[2]
    for e, count in enumerate(expert_num_tokens.tolist()):
        for t in range(count):
            h = _silu(x[e, t, :half]) * x[e, t, half:]
            codes[e, t], of_groups[e, t] = _fp8_groups(h, group_size, eps, _format(fp8), use_ue8m0)
    return codes, of_groups


def silu_mul_quant_fp8(x: Array, scales: Array, fp8: object) -> Results:
    half = x.shape[1] // 2
    return (_fp8(_silu(x[:, :half]) * x[:, half:], np.float32(scales[0]), _format(fp8)),)


def swiglustep_and_mul(x: Array, limit: float) -> Results:
    half = x.shape[1] // 2
    gate = np.minimum(_silu(x[:, :half]), limit)
    return (gate * np.maximum(-limit, np.minimum(x[:, half:], limit)),)
