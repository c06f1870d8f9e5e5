"""Routing to experts with a warp for each token, so that no reduction leaves a warp.

Score and expert are one integer of 64 bits, the score in its upper half in an order of integers: one reduction a choice
finds both. Groups are ranked by comparing all pairs.
"""

import triton
import triton.language as tl


@triton.jit
def _score(x, greatest, total, SCORING: tl.constexpr):
    if SCORING == 0:
        scores = tl.exp(x - greatest) / total
    elif SCORING == 1:
        scores = tl.sigmoid(x)
    else:
        small = tl.exp(-tl.abs(x))
        above = 1.0 + small
        scores = tl.sqrt(tl.maximum(x, 0.0) + tl.log(above) + (small - (above - 1.0)) / above)
    return scores


@triton.jit
def _keys(choice, experts):
    bits = choice.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (ordered.to(tl.int64) << 32) | (0xFFFF - experts).to(tl.int64)


@triton.jit
def _route(
    logits_ptr,
    bias_ptr,
    weights_ptr,
    ids_ptr,
    num_tokens,
    num_experts,
    size,
    num_groups,
    topk_groups,
    top_k,
    factor,
    SCORING: tl.constexpr,
    RENORMALIZE: tl.constexpr,
    BIASED: tl.constexpr,
    TOKENS: tl.constexpr,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    CHOSEN: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    present = tokens < num_tokens
    places = tl.arange(0, GROUPS * SIZE)
    groups, members = places // SIZE, places % SIZE
    experts = groups * size + members
    real = (groups < num_groups) & (members < size)
    mask = present[:, None] & real[None, :]
    x = tl.load(logits_ptr + tokens[:, None] * num_experts + experts[None, :], mask=mask, other=float("-inf"))
    x = tl.where(present[:, None], x.to(tl.float32), 0.0)
    greatest = tl.zeros((TOKENS,), tl.float32)
    total = greatest + 1.0
    if SCORING == 0:
        greatest = tl.max(x, axis=1)
        total = tl.sum(tl.exp(x - greatest[:, None]), axis=1)
    choice = _score(x, greatest[:, None], total[:, None], SCORING)
    if BIASED:
        choice += tl.load(bias_ptr + experts, mask=real, other=0.0)[None, :]
    choice = tl.where(real[None, :], choice, float("-inf"))
    keys = _keys(choice, experts[None, :])
    if GROUPS > 1:
        least = tl.full((1,), -0x8000000000000000, tl.int64)
        grouped = tl.reshape(keys, (TOKENS, GROUPS, SIZE))
        first = tl.max(grouped, axis=2)
        group_scores = tl.max(tl.reshape(choice, (TOKENS, GROUPS, SIZE)), axis=2)
        if size > 1:
            rest = tl.where(grouped == first[:, :, None], least, grouped)
            bits = (tl.max(rest, axis=2) >> 32).to(tl.int32)
            group_scores += tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.float32, bitcast=True)
        index = tl.arange(0, GROUPS)
        group_scores = tl.where((index < num_groups)[None, :], group_scores, float("-inf"))
        mine, other = group_scores[:, :, None], group_scores[:, None, :]
        earlier = (index[None, :] < index[:, None])[None, :, :]
        rank = tl.sum(((other > mine) | ((other == mine) & earlier)).to(tl.int32), axis=2)
        allowed = (rank < topk_groups)[:, :, None]
        keys = tl.reshape(tl.where(allowed, grouped, least), (TOKENS, GROUPS * SIZE))
    ranks = tl.arange(0, CHOSEN)
    ids = tl.zeros((TOKENS, CHOSEN), tl.int32)
    for rank_of_choice in range(top_k):
        best = tl.max(keys, axis=1)
        expert = 0xFFFF - (best & 0xFFFF).to(tl.int32)
        ids = tl.where((ranks == rank_of_choice)[None, :], expert[:, None], ids)
        keys = tl.where(keys == best[:, None], -0x8000000000000000, keys)
    chosen = present[:, None] & (ranks < top_k)[None, :]
    own = tl.load(logits_ptr + tokens[:, None] * num_experts + ids, mask=chosen, other=0.0).to(tl.float32)
    weights = tl.where(chosen, _score(own, greatest[:, None], total[:, None], SCORING), 0.0)
    if RENORMALIZE:
        weights = weights / (tl.sum(weights, axis=1) + 1e-20)[:, None]
    out = tokens[:, None] * top_k + ranks[None, :]
    tl.store(weights_ptr + out, weights * factor, mask=chosen)
    tl.store(ids_ptr + out, ids, mask=chosen)


def moe_router(logits, bias, scoring, num_groups, topk_groups, renormalize, factor, topk_weights, topk_ids):
    num_tokens, num_experts = logits.shape
    top_k = topk_ids.shape[1]
    if num_groups == topk_groups:
        num_groups = topk_groups = 1
    size = num_experts // num_groups
    tokens = 4 if num_tokens >= 1024 else 1
    _route[(triton.cdiv(num_tokens, tokens),)](
        logits,
        bias,
        topk_weights,
        topk_ids,
        num_tokens,
        num_experts,
        size,
        num_groups,
        topk_groups,
        top_k,
        factor,
        SCORING=scoring,
        RENORMALIZE=renormalize,
        BIASED=bias is not None,
        TOKENS=tokens,
        GROUPS=triton.next_power_of_2(num_groups),
        SIZE=triton.next_power_of_2(size),
        CHOSEN=triton.next_power_of_2(top_k),
        num_warps=tokens,
    )
