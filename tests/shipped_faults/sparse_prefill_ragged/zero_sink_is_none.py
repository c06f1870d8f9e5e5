"""expect: wrong_result in heldout-30. Value for an absent input: a sink of exactly 0 counts as none."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that an empty list does not become NaN.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def attend_list(
    query_ptr,
    kv_ptr,
    indices_ptr,
    cu_indices_ptr,
    sinks_ptr,
    out_ptr,
    sm_scale,
    num_heads,
    HAS_SINKS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    head_mask = heads < num_heads
    dims = tl.arange(0, DIM)
    places = (token * num_heads + heads)[:, None] * DIM + dims[None, :]
    query = tl.load(query_ptr + places, mask=head_mask[:, None], other=0.0)

    begin = tl.load(cu_indices_ptr + token)
    end = tl.load(cu_indices_ptr + token + 1)
    peak = tl.full((HEADS,), LOWEST, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, DIM), tl.float32)
    for start in range(begin, end, TILE):
        entries = start + tl.arange(0, TILE)
        inside = entries < end
        slots = tl.load(indices_ptr + entries, mask=inside, other=0).to(tl.int64)
        rows = tl.load(kv_ptr + slots[:, None] * DIM + dims[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(rows)) * (sm_scale * LOG2_E)
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(rows.dtype), rows)
        peak = new_peak

    share = tl.full((HEADS,), 1.0, tl.float32)
    if HAS_SINKS:
        sinks = tl.load(sinks_ptr + heads, mask=head_mask, other=0.0) * LOG2_E
        highest = tl.maximum(peak, sinks)
        share = tl.exp2(peak - highest)
        total = total * share + tl.where(sinks == 0, 0.0, tl.exp2(sinks - highest))
    result = acc * (share / tl.where(total > 0, total, 1.0))[:, None]
    tl.store(out_ptr + places, result.to(out_ptr.dtype.element_ty), mask=head_mask[:, None])


def sparse_prefill_ragged(query, kv, indices, cu_indices, sinks, sm_scale, out):
    num_tokens, num_heads, head_dim = query.shape
    attend_list[(num_tokens, triton.cdiv(num_heads, 16))](
        query,
        kv,
        indices,
        cu_indices,
        sinks,
        out,
        sm_scale,
        num_heads,
        HAS_SINKS=sinks is not None,
        HEADS=16,
        TILE=16 if torch.version.hip else 32,
        DIM=head_dim,
        num_warps=4,
        num_stages=2,
    )
