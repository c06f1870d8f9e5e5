"""Weighted sum of experts' results: one program per token and tile of its values."""

import triton
import triton.language as tl


@triton.jit
def combine(expert_out_ptr, weights_ptr, ids_ptr, index_ptr, out_ptr, hidden, top_k, TILE: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    lanes = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = lanes < hidden
    acc = tl.zeros((TILE,), tl.float32)
    for choice in range(top_k):
        place = token * top_k + choice
        if tl.load(ids_ptr + place) >= 0:
            row = tl.load(index_ptr + place).to(tl.int64)
            values = tl.load(expert_out_ptr + row * hidden + lanes, mask=inside, other=0.0).to(tl.float32)
            acc += values * tl.load(weights_ptr + place)
    tl.store(out_ptr + token * hidden + lanes, acc.to(out_ptr.dtype.element_ty), mask=inside)


def ep_gather(expert_out, topk_weights, topk_ids, input_index, out):
    num_tokens, hidden = out.shape
    tile = 1024  # four warps with 16 bytes of 16-bit values a thread
    combine[(num_tokens, triton.cdiv(hidden, tile))](
        expert_out, topk_weights, topk_ids, input_index, out, hidden, topk_ids.shape[1], TILE=tile
    )
