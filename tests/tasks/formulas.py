"""What each operator computes, written once more in NumPy from the `summary` of its task, apart from any reference.

One function an operator, called as the task's folder; `formulas_attention` holds those of attention. Parameters are
inputs, scalars and axes by the names that the task declares: floating tensors as float64, others in their own dtype,
an input that the case omits as None. Returned is a tuple: the outputs, then the mutable inputs as they are afterwards.
Sums are spelt out (loops, einsum), so that a mistake in the use of a PyTorch function does not come back here.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import erf

Array = NDArray[Any]
Results = tuple[Array, ...]
DTYPES: dict[str, DTypeLike] = {
    "torch.float32": np.float32,
    "torch.float16": np.float16,
    "torch.bfloat16": ml_dtypes.bfloat16,
}
"""NumPy's dtypes by the names of PyTorch's."""


def _log_softmax(row: Array) -> Array:
    """Logarithm of the softmax of one row, by its definition."""
    shifted = row - row.max()
    return np.asarray(shifted - math.log(np.exp(shifted).sum()))


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    """Rows x (M, I) through a weight (O, I), one row an output, and a bias (O,)."""
    return np.asarray(np.einsum("mi,oi->mo", x, weight) + bias[np.newaxis, :])


def _relu(x: Array) -> Array:
    return np.where(x > 0, x, 0.0)


def _gelu_by_erf(x: Array) -> Array:
    return np.asarray(x / 2 * (1 + erf(x / math.sqrt(2))))


# Element by element


def silu(x: Array) -> Results:
    return (x / (1 + np.exp(-x)),)


def gelu(x: Array, approximate: bool) -> Results:
    if not approximate:
        return (_gelu_by_erf(x),)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    small = np.exp(-2 * np.abs(inner))  # of negative numbers alone: x has outliers
    return (x / 2 * (1 + np.sign(inner) * (1 - small) / (1 + small)),)


def scaled_sigmoid(x: Array, slope: float, maximum: float) -> Results:
    """With an exponential of negative numbers alone: slopes are large in some cases."""
    small = np.exp(-np.abs(slope * x))
    return (maximum * np.where(x * slope >= 0, 1.0, small) / (1 + small),)


def scaled_tanh(x: Array, slope: float, maximum: float) -> Results:
    """tanh(u) = sign(u) · (1 - exp(-2 |u|)) / (1 + exp(-2 |u|))."""
    small = np.exp(-2 * np.abs(slope * x))
    return (maximum * np.sign(slope * x) * (-np.expm1(-2 * np.abs(slope * x))) / (1 + small),)


def fused_leaky_relu(x: Array, bias: Array, negative_slope: float, scale: float) -> Results:
    y = np.empty_like(x)
    for channel, of_channel in enumerate(bias):
        v = x[:, channel, :] + of_channel
        y[:, channel, :] = scale * np.where(v >= 0, v, negative_slope * v)
    return (y,)


def position_embedding(x: Array, table: Array, start: int) -> Results:
    y = x.copy()
    for element in range(x.shape[1]):
        y[:, element, :] += table[start + element]
    return (y,)


# Copies


def transpose(x: Array) -> Results:
    batch, rows, columns = x.shape
    y = np.empty((batch, columns, rows))
    for m in range(rows):
        y[:, :, m] = x[:, m, :]
    return (y,)


def gather_rows(table: Array, index: Array) -> Results:
    y = np.empty((len(index), table.shape[1]))
    for k, row in enumerate(index):
        y[k] = table[int(row)]
    return (y,)


def reshape_and_cache_flash(
    key: Array, value: Array, key_cache: Array, value_cache: Array, slot_mapping: Array, block_size: int
) -> Results:
    keys, values = key_cache.copy(), value_cache.copy()
    for token, slot in enumerate(slot_mapping.tolist()):
        if slot != -1:
            block, place = divmod(slot, block_size)
            keys[block, place] = key[token]
            values[block, place] = value[token]
    return keys, values


# Rows: normalization, softmax, losses, quantization


def softmax(x: Array) -> Results:
    y = np.empty_like(x)
    for m, row in enumerate(x):
        exponentials = np.exp(row - row.max())
        y[m] = exponentials / exponentials.sum()
    return (y,)


def rms_norm(x: Array, weight: Array, eps: float) -> Results:
    y = np.empty_like(x)
    for m, row in enumerate(x):
        y[m] = weight * row / math.sqrt((row * row).sum() / len(row) + eps)
    return (y,)


def layer_normalization(x: Array, gain: Array, bias: Array, eps: float) -> Results:
    y = np.empty_like(x)
    for m, row in enumerate(x):
        centred = row - row.sum() / len(row)
        deviation = math.sqrt((centred * centred).sum() / (len(row) - 1))
        y[m] = gain * centred / (deviation + eps) + bias
    return (y,)


def cross_entropy_label_smoothing(logits: Array, target: Array, smoothing: float) -> Results:
    total = 0.0
    for row, right in zip(logits, target, strict=True):
        p = _log_softmax(row)
        total += (1 - smoothing) * -p[int(right)] + smoothing * -p.sum() / len(p)
    return (np.asarray(total / len(logits)),)


def distillation_loss(student: Array, teacher: Array, temperature: float) -> Results:
    total = 0.0
    for of_student, of_teacher in zip(student, teacher, strict=True):
        s, t = _log_softmax(of_student / temperature), _log_softmax(of_teacher / temperature)
        total += (np.exp(t) * (t - s)).sum()
    return (np.asarray(temperature**2 * total),)


def per_token_group_quant_int8(x: Array, group_size: int, eps: float) -> Results:
    tokens, hidden = x.shape
    codes = np.empty((tokens, hidden))
    scales = np.empty((tokens, hidden // group_size))
    for token in range(tokens):
        for group in range(hidden // group_size):
            of_group = slice(group * group_size, (group + 1) * group_size)
            scale = max(np.abs(x[token, of_group]).max(), eps) / 127
            scales[token, group] = scale
            codes[token, of_group] = np.clip(np.rint(x[token, of_group] / scale), -128, 127)
    return codes, scales


# Products of matrices and what is fused to them


def simple_matmul(a: Array, b: Array) -> Results:
    return (np.einsum("mk,kn->mn", a, 2 * b),)


def inner_product(image: Array, scale: Array, sound: Array, bias: Array) -> Results:
    return (np.einsum("bcp,c,bcs->bps", image, scale, sound) + bias[0],)


def gated_selection(a: Array, b: Array, weight: Array, bias: Array) -> Results:
    width = a.shape[1]
    gate_input = np.einsum("md,od->mo", a, weight[:, :width]) + np.einsum("md,od->mo", b, weight[:, width:]) + bias
    z = 1 / (1 + np.exp(-gate_input))
    return (z * a + (1 - z) * b,)


def feedforward_sigmoid(
    first: Array, second: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array
) -> Results:
    y = np.empty((len(first) + len(second), len(weight2)))
    for offset, x in ((0, first), (len(first), second)):
        out = _linear(_relu(_linear(x, weight1, bias1)), weight2, bias2)
        y[offset : offset + len(x)] = 1 / (1 + np.exp(-out))
    return (y,)


def mlp(
    x: Array,
    weight1: Array,
    bias1: Array,
    weight2: Array,
    bias2: Array,
    weight3: Array,
    bias3: Array,
    weight4: Array,
    bias4: Array,
    weight5: Array,
    bias5: Array,
    weight6: Array,
    bias6: Array,
    weight7: Array,
    bias7: Array,
) -> Results:
    h = _relu(_linear(x, weight1, bias1))
    h = _relu(_linear(h, weight2, bias2))
    h = _relu(_linear(h, weight3, bias3))
    h = _relu(_linear(h, weight4, bias4))
    h = _relu(_linear(h, weight5, bias5))
    h = _relu(_linear(h, weight6, bias6))
    return (_linear(h, weight7, bias7),)


def masked_language_model_head(x: Array, weight: Array, bias: Array) -> Results:
    return (np.stack([_log_softmax(logits) for logits in _linear(x, weight, bias)]),)


def position_wise_ffn(
    x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array, gain: Array, bias: Array, eps: float
) -> Results:
    z = x + _linear(_relu(_linear(x, weight1, bias1)), weight2, bias2)
    y = np.empty_like(z)
    for m, row in enumerate(z):
        centred = row - row.sum() / len(row)
        y[m] = gain * centred / math.sqrt((centred * centred).sum() / len(row) + eps) + bias
    return (y,)


def transformer_ffn(
    x: Array, conv_weight: Array, conv_bias: Array, weight: Array, bias: Array, causal: bool
) -> Results:
    batch, length, _ = x.shape
    taps = conv_weight.shape[2]
    before = taps - 1 if causal else (taps - 1) // 2
    y = np.empty_like(x)
    for b in range(batch):
        h = np.tile(conv_bias, (length, 1))
        for t in range(length):
            for k in range(taps):
                if 0 <= t + k - before < length:
                    h[t] += np.einsum("fd,d->f", conv_weight[:, :, k], x[b, t + k - before])
        y[b] = _linear(_gelu_by_erf(h), weight, bias)
    return (y,)
