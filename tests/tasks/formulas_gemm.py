"""The operators of suite gemm, as `formulas` has the others: quantized numbers are scaled first and then summed up."""

from __future__ import annotations

import numpy as np

from tests.tasks.formulas import Array, Results
from tests.tasks.formulas_quantization import awq_dequantize


def awq_gemm(a: Array, qweight: Array, scales: Array, qzeros: Array, group_size: int) -> Results:
    (weight,) = awq_dequantize(qweight, scales, qzeros, group_size)
    return (np.einsum("mk,kn->mn", a, weight),)


def bmm(a: Array, b: Array) -> Results:
    return (np.stack([np.einsum("mk,kn->mn", left, right) for left, right in zip(a, b, strict=True)]),)


def lora_expand(x: Array, weight: Array, token_lora_ids: Array, slice_offsets: Array, out: Array) -> Results:
    after = out.copy()
    for t, adapter in enumerate(token_lora_ids.tolist()):
        if adapter == -1:
            continue
        for s in range(len(x)):
            columns = slice(int(slice_offsets[s]), int(slice_offsets[s + 1]))
            after[t, columns] += np.einsum("r,nr->n", x[s, t], weight[adapter, columns])
    return (after,)


def lora_shrink(x: Array, weight: Array, token_order: Array, lora_offsets: Array, scaling: float) -> Results:
    slices, adapters, rank, _ = weight.shape
    out = np.zeros((slices, len(x), rank))
    for adapter in range(adapters):
        group = slice(int(lora_offsets[adapter + 1]), int(lora_offsets[adapter + 2]))
        for t in token_order[group].tolist():
            out[:, t] = scaling * np.einsum("h,srh->sr", x[t], weight[:, adapter])
    return (out,)


def matmul_persistent(a: Array, b: Array, bias: Array | None) -> Results:
    product = np.einsum("mk,kn->mn", a, b)
    return (product if bias is None else product + bias[np.newaxis, :],)


def scaled_mm(a: Array, b: Array, a_scales: Array, b_scales: Array, bias: Array | None) -> Results:
    out = np.einsum("mk,kn->mn", a.astype(np.float64), b.astype(np.float64))
    for m in range(len(out)):
        out[m] *= a_scales[m if len(a_scales) > 1 else 0]
    for n in range(out.shape[1]):
        out[:, n] *= b_scales[n if len(b_scales) > 1 else 0]
    return (out if bias is None else out + bias[np.newaxis, :],)


def w8a8_block_int8_matmul(a: Array, b: Array, a_scales: Array, b_scales: Array, block_n: int, block_k: int) -> Results:
    return (_product_of_blocks(a, b, a_scales, b_scales, block_n, block_k),)


def w8a8_block_scaled_mm(a: Array, b: Array, a_scales: Array, b_scales: Array, block_n: int, block_k: int) -> Results:
    return (_product_of_blocks(a, b, a_scales, b_scales, block_n, block_k),)


def _product_of_blocks(a: Array, b: Array, a_scales: Array, b_scales: Array, block_n: int, block_k: int) -> Array:
    """Values a (M, K) and b (N, K), every one multiplied by the scale of its block, then summed over K."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    for k in range(a.shape[1]):
        left[:, k] *= a_scales[:, k // block_k]
        for n in range(len(b)):
            right[n, k] *= b_scales[n // block_n, k // block_k]
    return np.asarray(np.einsum("mk,nk->mn", left, right))
