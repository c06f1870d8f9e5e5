"""expect: wrong_result in heldout-28. Ties: the second greatest score of a group has to differ from the first."""

import triton
import triton.language as tl


@triton.jit
def score(x, greatest, total, SCORING: tl.constexpr):
    """Scores of logits; log(1 + v) is log(u) with u = 1 + v, and what rounding lost of v, over u."""
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
def route(
    logits_ptr,
    bias_ptr,
    weights_ptr,
    ids_ptr,
    num_experts,
    size,
    num_groups,
    topk_groups,
    top_k,
    factor,
    SCORING: tl.constexpr,
    RENORMALIZE: tl.constexpr,
    BIASED: tl.constexpr,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    CHOSEN: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    groups = tl.arange(0, GROUPS)
    members = tl.arange(0, SIZE)
    experts = groups[:, None] * size + members[None, :]
    real = (groups < num_groups)[:, None] & (members < size)[None, :]
    x = tl.load(logits_ptr + token * num_experts + experts, mask=real, other=float("-inf")).to(tl.float32)
    greatest = tl.max(tl.max(x, axis=1), axis=0)
    total = tl.sum(tl.sum(tl.exp(x - greatest), axis=1), axis=0)
    choice = score(x, greatest, total, SCORING)
    if BIASED:
        choice += tl.load(bias_ptr + experts, mask=real, other=0.0)
    choice = tl.where(real, choice, float("-inf"))
    if topk_groups < num_groups:
        first = tl.max(choice, axis=1)
        group_scores = first
        if size > 1:
            group_scores += tl.max(tl.where(choice == first[:, None], float("-inf"), choice), axis=1)
        allowed = tl.zeros((GROUPS,), tl.int32)
        for _ in range(topk_groups):
            best = tl.argmax(tl.where(allowed == 0, group_scores, float("-inf")), axis=0)
            allowed = tl.where(groups == best, 1, allowed)
        choice = tl.where((allowed == 1)[:, None], choice, float("-inf"))
    ranks = tl.arange(0, CHOSEN)
    ids = tl.zeros((CHOSEN,), tl.int32)
    flat = tl.reshape(choice, (GROUPS * SIZE,))
    places = tl.arange(0, GROUPS * SIZE)
    for rank in range(top_k):
        best = tl.argmax(flat, axis=0)
        ids = tl.where(ranks == rank, best // SIZE * size + best % SIZE, ids)
        flat = tl.where(places == best, float("-inf"), flat)
    chosen = ranks < top_k
    own = tl.load(logits_ptr + token * num_experts + ids, mask=chosen, other=0.0).to(tl.float32)
    weights = tl.where(chosen, score(own, greatest, total, SCORING), 0.0)
    if RENORMALIZE:
        weights = weights / (tl.sum(weights, axis=0) + 1e-20)
    tl.store(weights_ptr + token * top_k + ranks, weights * factor, mask=chosen)
    tl.store(ids_ptr + token * top_k + ranks, ids, mask=chosen)


def moe_router(logits, bias, scoring, num_groups, topk_groups, renormalize, factor, topk_weights, topk_ids):
    num_tokens, num_experts = logits.shape
    top_k = topk_ids.shape[1]
    size = num_experts // num_groups
    route[(num_tokens,)](
        logits,
        bias,
        topk_weights,
        topk_ids,
        num_experts,
        size,
        num_groups,
        topk_groups,
        top_k,
        factor,
        SCORING=scoring,
        RENORMALIZE=renormalize,
        BIASED=bias is not None,
        GROUPS=triton.next_power_of_2(num_groups),
        SIZE=triton.next_power_of_2(size),
        CHOSEN=triton.next_power_of_2(top_k),
    )
