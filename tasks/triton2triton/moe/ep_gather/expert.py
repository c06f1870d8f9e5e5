"""Weighted sum of experts' results with the rows of two choices loaded at once.

The baseline reads an id, then an index, then the values, choice by choice: three dependent loads for each. Here two
ids, indices and weights are one load each, and a thread has a vector of 16 bytes of both choices on the way together.
Rows of more choices at once would leave fewer programs a multiprocessor, and reach less of the bandwidth.
"""

import triton
import triton.language as tl

MOST_CHOICES = 2


@triton.jit
def _combine_tile(
    expert_out_ptr, weights_ptr, ids_ptr, index_ptr, out_ptr, hidden, top_k, CHOICES: tl.constexpr, TILE: tl.constexpr
):
    tiles = tl.cdiv(hidden, TILE)
    token = (tl.program_id(0) // tiles).to(tl.int64)
    lanes = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    inside = lanes < hidden
    acc = tl.zeros((TILE,), tl.float32)
    for first in range(0, top_k, CHOICES):
        choices = first + tl.arange(0, CHOICES)
        places = token * top_k + choices
        real = choices < top_k
        here = (tl.load(ids_ptr + places, mask=real, other=-1) >= 0) & real
        rows = tl.load(index_ptr + places, mask=real, other=0).to(tl.int64)
        weights = tl.load(weights_ptr + places, mask=real, other=0.0)
        sources = expert_out_ptr + rows[:, None] * hidden + lanes[None, :]
        values = tl.load(sources, mask=here[:, None] & inside[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(values * weights[:, None], axis=0)
    tl.store(out_ptr + token * hidden + lanes, acc.to(out_ptr.dtype.element_ty), mask=inside)


def ep_gather(expert_out, topk_weights, topk_ids, input_index, out):
    num_tokens, hidden = out.shape
    top_k = topk_ids.shape[1]
    # Four warps with 16 bytes a thread.
    tile = min(triton.next_power_of_2(hidden), 2048 // out.element_size())
    _combine_tile[(num_tokens * triton.cdiv(hidden, tile),)](
        expert_out,
        topk_weights,
        topk_ids,
        input_index,
        out,
        hidden,
        top_k,
        CHOICES=min(MOST_CHOICES, triton.next_power_of_2(top_k)),
        TILE=tile,
    )
