"""Merge of two partial attention results by tiles of a few heads, each of one warp where it can be."""

import triton
import triton.language as tl

TILE_ELEMENTS = 512
ENOUGH_PROGRAMS = 2048


@triton.jit
def _shares(prefix_lse_ptr, suffix_lse_ptr, places, mask):
    """What each side weighs, and the merged log-sum-exp. Infinite ones of either sign weigh nothing."""
    infinity = float("inf")
    prefix = tl.load(prefix_lse_ptr + places, mask=mask, other=0.0)
    suffix = tl.load(suffix_lse_ptr + places, mask=mask, other=0.0)
    prefix = tl.where(prefix == infinity, -infinity, prefix)
    suffix = tl.where(suffix == infinity, -infinity, suffix)
    peak = tl.maximum(prefix, suffix)
    base = tl.where(peak == -infinity, 0.0, peak)
    prefix = tl.exp(prefix - base)
    suffix = tl.exp(suffix - base)
    total = prefix + suffix
    inverse = 1.0 / tl.where(total > 0, total, 1.0)
    return prefix * inverse, suffix * inverse, peak + tl.log(total)


@triton.jit
def _merge_rows(
    prefix_out_ptr,
    suffix_out_ptr,
    prefix_lse_ptr,
    suffix_lse_ptr,
    out_ptr,
    out_lse_ptr,
    num_tokens,
    num_heads,
    num_rows,
    head_dim,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    row_mask = rows < num_rows
    mask = row_mask[:, None] & (dims < head_dim)[None, :]
    places = rows[:, None] * head_dim + dims[None, :]
    # All four loads are in flight before the first result is needed.
    prefix_out = tl.load(prefix_out_ptr + places, mask=mask, other=0.0).to(tl.float32)
    suffix_out = tl.load(suffix_out_ptr + places, mask=mask, other=0.0).to(tl.float32)
    lse_places = rows % num_heads * num_tokens + rows // num_heads
    prefix, suffix, lse = _shares(prefix_lse_ptr, suffix_lse_ptr, lse_places, row_mask)
    # An empty side may hold anything, so that it is left out rather than multiplied by 0.
    merged = tl.where(prefix[:, None] > 0, prefix_out * prefix[:, None], 0.0)
    merged += tl.where(suffix[:, None] > 0, suffix_out * suffix[:, None], 0.0)
    tl.store(out_ptr + places, merged.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_lse_ptr + lse_places, lse, mask=row_mask)


def merge_attn_states(prefix_out, suffix_out, prefix_lse, suffix_lse, out, out_lse):
    num_tokens, num_heads, head_dim = prefix_out.shape
    num_rows = num_tokens * num_heads
    dim = triton.next_power_of_2(head_dim)
    rows = min(max(1, TILE_ELEMENTS // dim), triton.next_power_of_2(max(1, num_rows // ENOUGH_PROGRAMS)))
    _merge_rows[(triton.cdiv(num_rows, rows),)](
        prefix_out,
        suffix_out,
        prefix_lse,
        suffix_lse,
        out,
        out_lse,
        num_tokens,
        num_heads,
        num_rows,
        head_dim,
        ROWS=rows,
        DIM=dim,
        num_warps=max(1, dim // TILE_ELEMENTS),
    )
