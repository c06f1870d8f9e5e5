"""LoRA shrink that reads every token once for all slices: their ranks lie side by side as columns of one product.

Where tokens are few, hidden is cut into parts, whose sums a second kernel adds.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 512
MAX_PARTS = 32
BLOCKS_OF_A_PART = 4


@triton.jit
def _shrink_tile(
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
    total_rank,
    part_length,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One part of hidden for tokens of one group. Column c is rank c % rank of slice c // rank."""
    column_tiles = tl.cdiv(total_rank, COLUMNS)
    group = tl.program_id(1)
    part = tl.program_id(2)
    end = tl.load(lora_offsets_ptr + group + 1)
    first = tl.load(lora_offsets_ptr + group) + tl.program_id(0) // column_tiles * TOKENS
    if first >= end:
        return
    positions = first + tl.arange(0, TOKENS)
    token_mask = positions < end
    tokens = tl.load(token_order_ptr + positions, mask=token_mask, other=0).to(tl.int64)
    columns = tl.program_id(0) % column_tiles * COLUMNS + tl.arange(0, COLUMNS)
    column_mask = columns < total_rank
    layers = columns // rank
    ranks = columns % rank
    weight_rows = (layers * num_loras + group - 1).to(tl.int64) * rank + ranks
    begin = part * part_length
    stop = tl.where(group > 0, tl.minimum(begin + part_length, hidden), 0)
    acc = tl.zeros((TOKENS, COLUMNS), dtype=tl.float32)
    for start in range(begin, stop, BLOCK):
        h = start + tl.arange(0, BLOCK)
        inside = h < hidden
        x_mask = token_mask[:, None] & inside[None, :]
        x = tl.load(x_ptr + tokens[:, None] * x_stride + h[None, :], mask=x_mask, other=0.0)
        weight_mask = column_mask[None, :] & inside[:, None]
        weight = tl.load(weight_ptr + weight_rows[None, :] * hidden + h[:, None], mask=weight_mask, other=0.0)
        acc += tl.dot(x, weight, input_precision=PRECISION)
    out_rows = (part.to(tl.int64) * tl.cdiv(total_rank, rank) + layers)[None, :] * num_tokens + tokens[:, None]
    out_ptrs = out_ptr + out_rows * rank + ranks[None, :]
    tl.store(out_ptrs, acc * scaling, mask=token_mask[:, None] & column_mask[None, :])


@triton.jit
def _add_parts(partial_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(partial_ptr + i + part * tl.cast(count, tl.int64), mask=inside, other=0.0)
    tl.store(out_ptr + i, total, mask=inside)


def _parts(tiles: int, blocks: int) -> int:
    """Into how many parts to cut hidden: a power of two."""
    wanted = max(1, min(ENOUGH_PROGRAMS // tiles, blocks // BLOCKS_OF_A_PART, MAX_PARTS))
    return 1 << (wanted.bit_length() - 1)


def lora_shrink(x, weight, token_order, lora_offsets, scaling, out):
    num_slices, num_loras, rank, hidden = weight.shape
    num_tokens = x.shape[0]
    total_rank = num_slices * rank
    wide = max(16, min(128, triton.next_power_of_2(total_rank)))
    tall = 64 if num_tokens >= 64 * num_loras else 16
    block = 64 if x.element_size() == 2 else 32
    tiles = triton.cdiv(num_tokens, tall) * triton.cdiv(total_rank, wide)
    blocks = triton.cdiv(hidden, block)
    parts = _parts(tiles, blocks)
    partial = out
    if parts > 1:
        partial = torch.empty((parts, *out.shape), dtype=torch.float32, device=x.device)
    _shrink_tile[(tiles, num_loras + 1, parts)](
        x,
        weight,
        token_order,
        lora_offsets,
        partial,
        scaling,
        x.stride(0),
        num_tokens,
        hidden,
        rank,
        num_loras,
        total_rank,
        triton.cdiv(blocks, parts) * block,
        TOKENS=tall,
        COLUMNS=wide,
        BLOCK=block,
        num_warps=4,
    )
    if parts > 1:
        count = out.numel()
        _add_parts[(triton.cdiv(count, 1024),)](partial, out, count, PARTS=parts, BLOCK=1024)
