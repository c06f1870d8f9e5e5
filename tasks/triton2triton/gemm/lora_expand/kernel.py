"""LoRA expand: a program per tile of tokens, slice and tile of columns, one adapter of its tokens after the other."""

import triton
import triton.language as tl

TOKENS = 16
TILE_ELEMENTS = 8192


@triton.jit
def expand_tile(
    x_ptr,
    weight_ptr,
    token_lora_ids_ptr,
    slice_offsets_ptr,
    out_ptr,
    num_tokens,
    out_features,
    rank,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    layer = tl.program_id(1)
    columns = tl.load(slice_offsets_ptr + layer) + tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < tl.load(slice_offsets_ptr + layer + 1)
    adapters = tl.load(token_lora_ids_ptr + tokens, mask=tokens < num_tokens, other=-1)
    with_adapter = adapters >= 0
    ranks = tl.arange(0, RANK)
    rank_mask = ranks < rank
    x_mask = with_adapter[:, None] & rank_mask[None, :]
    x = tl.load(x_ptr + (layer * num_tokens + tokens)[:, None] * rank + ranks[None, :], mask=x_mask, other=0.0)
    x = x.to(weight_ptr.dtype.element_ty)
    delta = tl.zeros((TOKENS, COLUMNS), tl.float32)
    adapter = tl.max(adapters, axis=0)
    while adapter >= 0:
        rows = adapter.to(tl.int64) * out_features + columns
        weight_mask = rank_mask[:, None] & inside[None, :]
        weight = tl.load(weight_ptr + rows[None, :] * rank + ranks[:, None], mask=weight_mask, other=0.0)
        own = tl.where((adapters == adapter)[:, None], x, 0.0)
        delta += tl.dot(own, weight, input_precision="ieee")
        adapter = tl.max(tl.where(adapters < adapter, adapters, -1), axis=0)
    out_ptrs = out_ptr + tokens[:, None] * out_features + columns[None, :]
    mask = with_adapter[:, None] & inside[None, :]
    result = tl.load(out_ptrs, mask=mask, other=0.0).to(tl.float32) + delta
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=mask)


def lora_expand(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    out_features = out.shape[1]
    rank_lanes = max(16, triton.next_power_of_2(rank))
    columns = min(128, TILE_ELEMENTS // rank_lanes)
    # A slice may have nearly all columns, so that each gets as many programs as all of them need.
    expand_tile[(triton.cdiv(num_tokens, TOKENS), num_slices, triton.cdiv(out_features, columns))](
        x,
        weight,
        token_lora_ids,
        slice_offsets,
        out,
        num_tokens,
        out_features,
        rank,
        TOKENS=TOKENS,
        COLUMNS=columns,
        RANK=rank_lanes,
    )
