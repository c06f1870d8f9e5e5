"""The products of mixtures of experts, as `formulas` has the others: a loop over rows or choices, one expert a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.tasks.formulas import Array, Results


def _choices(sorted_token_ids: Array, expert_ids: Array, in_use: int, padding: int) -> Iterator[tuple[int, int]]:
    """Each choice that is listed, with its expert: blocks of as many entries as the lengths say, without padding."""
    block_m = len(sorted_token_ids) // len(expert_ids)
    for i in range(in_use):
        choice = int(sorted_token_ids[i])
        if choice != padding:
            yield choice, int(expert_ids[i // block_m])


def _halves(packed: Array) -> Array:
    """The codes of 4 bits along the last axis, which gets twice as long: the low half of a byte comes first."""
    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]))
    codes[..., 0::2] = packed % 16
    codes[..., 1::2] = packed // 16
    return codes


def batched_moe(x: Array, weight: Array, bias: Array | None, expert_num_tokens: Array, out: Array) -> Results:
    y = out.copy()
    for e, tokens in enumerate(expert_num_tokens.tolist()):
        for t in range(tokens):
            y[e, t] = np.einsum("k,nk->n", x[e, t], weight[e])
            if bias is not None:
                y[e, t] += bias[e]
    return (y,)


def expert_kernel(
    x: Array,
    weight: Array,
    scales: Array,
    bias: Array | None,
    expert_id: Array,
    token_ids: Array,
    expert_num_tokens: Array,
    out: Array,
) -> Results:
    y, e = out.copy(), int(expert_id[0])
    for i in range(int(expert_num_tokens[0])):
        y[i] = scales[e] * np.einsum("k,nk->n", x[int(token_ids[i])], weight[e].astype(np.float64))
        if bias is not None:
            y[i] += bias[e]
    return (y,)


def moe_mmk(
    a: Array,
    b: Array,
    a_scales: Array,
    b_scales: Array,
    expert_ids: Array,
    out: Array,
    group_n: int,
    group_k: int,
) -> Results:
    y = out.copy()
    block_m = len(a) // len(expert_ids)
    of_n = [n // group_n for n in range(b.shape[1])]
    of_k = [k // group_k for k in range(b.shape[2])]
    for i, e in enumerate(expert_ids.tolist()):
        if e == -1:
            continue
        scaled = b[e] * b_scales[e][of_n][:, of_k]
        for row in range(i * block_m, (i + 1) * block_m):
            y[row] = np.einsum("k,nk->n", a[row] * a_scales[row, of_k], scaled)
    return (y,)


def fused_moe(
    x: Array,
    weight: Array,
    bias: Array | None,
    topk_weights: Array,
    sorted_token_ids: Array,
    expert_ids: Array,
    num_tokens_post_padded: Array,
    mul_routed_weight: bool,
) -> Results:
    tokens, top_k = topk_weights.shape
    out = np.full((tokens, top_k, weight.shape[1]), np.nan)
    for c, e in _choices(sorted_token_ids, expert_ids, int(num_tokens_post_padded[0]), tokens * top_k):
        t, j = divmod(c, top_k)
        out[t, j] = np.einsum("k,nk->n", x[t], weight[e])
        if bias is not None:
            out[t, j] += bias[e]
        if mul_routed_weight:
            out[t, j] *= topk_weights[t, j]
    return (out,)


def fused_moe_lora(
    x: Array,
    lora_a: Array,
    lora_b: Array,
    topk_weights: Array,
    sorted_token_ids: Array,
    expert_ids: Array,
    num_tokens_post_padded: Array,
    out: Array,
    mul_routed_weight: bool,
) -> Results:
    y = out.copy()
    tokens, top_k = topk_weights.shape
    width = lora_b.shape[3]
    for adapter, in_use in enumerate(num_tokens_post_padded.tolist()):
        for c, e in _choices(sorted_token_ids[adapter], expert_ids[adapter], in_use, tokens * top_k):
            t, j = divmod(c, top_k)
            for s in range(len(lora_a)):
                h = np.einsum("rk,k->r", lora_a[s, adapter, e], x[t])
                increase = np.einsum("nr,r->n", lora_b[s, adapter, e], h)
                y[t, j, s * width : (s + 1) * width] += increase * (topk_weights[t, j] if mul_routed_weight else 1.0)
    return (y,)


def fused_moe_gptq_awq(
    x: Array,
    qweight: Array,
    scales: Array,
    qzeros: Array | None,
    topk_weights: Array,
    sorted_token_ids: Array,
    expert_ids: Array,
    num_tokens_post_padded: Array,
    mul_routed_weight: bool,
) -> Results:
    (tokens, top_k), (_, width) = topk_weights.shape, x.shape
    outputs, groups = scales.shape[1:]
    four_bits = qweight.shape[2] < width
    of_k = [k // (width // groups) for k in range(width)]
    codes = _halves(qweight) if four_bits else qweight.astype(np.float64)
    if qzeros is None:
        zeros = np.full(scales.shape, 8.0 if four_bits else 128.0)
    elif four_bits:
        zeros = _halves(qzeros.swapaxes(1, 2)).swapaxes(1, 2)[:, :outputs]
    else:
        zeros = qzeros.astype(np.float64)
    out = np.full((tokens, top_k, outputs), np.nan)
    for c, e in _choices(sorted_token_ids, expert_ids, int(num_tokens_post_padded[0]), tokens * top_k):
        t, j = divmod(c, top_k)
        weight = (codes[e] - zeros[e][:, of_k]) * scales[e][:, of_k]
        out[t, j] = np.einsum("k,nk->n", x[t], weight) * (topk_weights[t, j] if mul_routed_weight else 1.0)
    return (out,)
