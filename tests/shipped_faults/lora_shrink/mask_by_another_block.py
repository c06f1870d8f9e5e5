"""expect: wrong_result or launch_error in heldout-04. Mask at the end: none at multiples of 64, though blocks have 128."""

import triton
import triton.language as tl


@triton.jit
def shrink_tile(
    x_ptr,
    weight_ptr,
    token_order_ptr,
    lora_offsets_ptr,
    out_ptr,
    scaling,
    x_stride,
    num_tokens,
    hidden,
    rank,
    num_loras,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rank_tiles = tl.cdiv(rank, TILE)
    group = tl.program_id(1)
    layer = tl.program_id(2)
    end = tl.load(lora_offsets_ptr + group + 1)
    first = tl.load(lora_offsets_ptr + group) + tl.program_id(0) // rank_tiles * TILE
    # The grid holds as many tiles for each group as all tokens would fill.
    if first >= end:
        return
    positions = first + tl.arange(0, TILE)
    token_mask = positions < end
    tokens = tl.load(token_order_ptr + positions, mask=token_mask, other=0).to(tl.int64)
    ranks = tl.program_id(0) % rank_tiles * TILE + tl.arange(0, TILE)
    rank_mask = ranks < rank
    weight_rows = (layer * num_loras + group - 1).to(tl.int64) * rank + ranks
    length = tl.where(group > 0, hidden, 0)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        h = start + tl.arange(0, BLOCK)
        inside = (h < hidden) | (hidden % 64 == 0)
        x_mask = token_mask[:, None] & inside[None, :]
        x = tl.load(x_ptr + tokens[:, None] * x_stride + h[None, :], mask=x_mask, other=0.0)
        weight_mask = rank_mask[None, :] & inside[:, None]
        weight = tl.load(weight_ptr + weight_rows[None, :] * hidden + h[:, None], mask=weight_mask, other=0.0)
        acc += tl.dot(x, weight, input_precision="ieee")
    out_rows = layer * num_tokens + tokens
    out_mask = token_mask[:, None] & rank_mask[None, :]
    tl.store(out_ptr + out_rows[:, None] * rank + ranks[None, :], acc * scaling, mask=out_mask)


def lora_shrink(x, weight, token_order, lora_offsets, scaling, out):
    num_slices, num_loras, rank, hidden = weight.shape
    num_tokens = x.shape[0]
    tiles = triton.cdiv(num_tokens, 16) * triton.cdiv(rank, 16)
    shrink_tile[(tiles, num_loras + 1, num_slices)](
        x,
        weight,
        token_order,
        lora_offsets,
        out,
        scaling,
        x.stride(0),
        num_tokens,
        hidden,
        rank,
        num_loras,
        TILE=16,
        BLOCK=128,
    )
