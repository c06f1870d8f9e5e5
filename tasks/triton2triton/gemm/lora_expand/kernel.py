"""LoRA expand: a program per token, slice and tile of columns multiplies a piece of the weight by one vector."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def expand_token(
    x_ptr,
    weight_ptr,
    token_lora_ids_ptr,
    slice_offsets_ptr,
    out_ptr,
    num_tokens,
    out_features,
    rank,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    layer = tl.program_id(1)
    adapter = tl.load(token_lora_ids_ptr + token).to(tl.int64)
    columns = tl.load(slice_offsets_ptr + layer) + tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < tl.load(slice_offsets_ptr + layer + 1)
    if adapter >= 0:
        ranks = tl.arange(0, RANK)
        rank_mask = ranks < rank
        x = tl.load(x_ptr + (layer * num_tokens + token) * rank + ranks, mask=rank_mask, other=0.0)
        rows = adapter * out_features + columns
        weight_mask = inside[:, None] & rank_mask[None, :]
        weight = tl.load(weight_ptr + rows[:, None] * rank + ranks[None, :], mask=weight_mask, other=0.0)
        delta = tl.sum(weight.to(tl.float32) * x[None, :], axis=1)
        out_ptrs = out_ptr + token * out_features + columns
        result = tl.load(out_ptrs, mask=inside, other=0.0).to(tl.float32) + delta
        tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=inside)


def lora_expand(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    out_features = out.shape[1]
    rank_lanes = triton.next_power_of_2(rank)
    columns = TILE_ELEMENTS // rank_lanes
    # A slice may have nearly all columns, so that each gets as many programs as all of them need.
    expand_token[(num_tokens, num_slices, triton.cdiv(out_features, columns))](
        x,
        weight,
        token_lora_ids,
        slice_offsets,
        out,
        num_tokens,
        out_features,
        rank,
        COLUMNS=columns,
        RANK=rank_lanes,
    )
