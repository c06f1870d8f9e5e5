"""expect: launch_error. Grid limit: more than 65,535 choices are a grid that no device launches."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_tile(ids_ptr, counts_ptr, num_choices, num_experts, TILE: tl.constexpr):
    """Choices of one expert in one tile."""
    places = tl.program_id(1) * TILE + tl.arange(0, TILE)
    ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
    count = tl.sum((ids == tl.program_id(0)).to(tl.int32), axis=0)
    tl.store(counts_ptr + tl.program_id(1) * num_experts + tl.program_id(0), count)


@triton.jit
def find_rows(ids_ptr, counts_ptr, starts_ptr, index_ptr, num_choices, num_experts, TILE: tl.constexpr):
    """Rows of one tile's choices."""
    places = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
    here = ids >= 0
    rows = tl.load(starts_ptr + ids, mask=here, other=0)
    for tile in range(tl.program_id(0)):
        rows += tl.load(counts_ptr + tile * num_experts + ids, mask=here, other=0)
    before = places[None, :] < places[:, None]
    rows += tl.sum((before & (ids[None, :] == ids[:, None])).to(tl.int32), axis=1)
    tl.store(index_ptr + places, tl.where(here, rows, -1), mask=places < num_choices)


@triton.jit
def copy_token(x_ptr, x_scales_ptr, index_ptr, out_ptr, out_scales_ptr, hidden, num_groups, top_k, BLOCK: tl.constexpr):
    """One choice: all codes and scales of its token."""
    choice = tl.program_id(1).to(tl.int64)
    token = choice // top_k
    row = tl.load(index_ptr + choice).to(tl.int64)
    if row >= 0:
        for start in range(0, hidden, BLOCK):
            lanes = start + tl.arange(0, BLOCK)
            codes = tl.load(x_ptr + token * hidden + lanes, mask=lanes < hidden)
            tl.store(out_ptr + row * hidden + lanes, codes, mask=lanes < hidden)
        for start in range(0, num_groups, BLOCK):
            lanes = start + tl.arange(0, BLOCK)
            scales = tl.load(x_scales_ptr + token * num_groups + lanes, mask=lanes < num_groups)
            tl.store(out_scales_ptr + row * num_groups + lanes, scales, mask=lanes < num_groups)


def ep_scatter_2(x, x_scales, topk_ids, expert_starts, out, out_scales, output_index):
    num_choices = topk_ids.numel()
    num_experts = expert_starts.numel()
    tile = min(128, max(16, triton.next_power_of_2(num_choices // 16)))
    tiles = triton.cdiv(num_choices, tile)
    counts = torch.empty((tiles, num_experts), dtype=torch.int32, device=x.device)
    count_tile[(num_experts, tiles)](topk_ids, counts, num_choices, num_experts, TILE=tile)
    find_rows[(tiles,)](topk_ids, counts, expert_starts, output_index, num_choices, num_experts, TILE=tile)
    copy_token[(1, num_choices)](
        # Codes are bytes, whatever they stand for.
        x.view(torch.uint8),
        x_scales,
        output_index,
        out.view(torch.uint8),
        out_scales,
        x.shape[1],
        x_scales.shape[1],
        topk_ids.shape[1],
        BLOCK=256,
    )
