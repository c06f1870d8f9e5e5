"""Tokens to expert order: one histogram a tile, one scan an expert, and copies that read a token once.

The baseline copies a choice in steps of 256 bytes, two a thread, and the next step's load waits behind a store that may
alias: 28 waits for memory for 7168 codes. Every token is read once for each of its choices. Counting takes a program
for each expert and tile, 131072 of them for 128 experts and 131072 choices. Each tile then adds up to 1023 earlier
counts, one after the other.

Here a program copies a token to all of its rows. It loads up to 4096 words of 4 bytes at once, 16 bytes an access, and
stores them from registers. Rows of odd lengths move in words of one or two bytes, also at once. One histogram counts a
tile, and a scan turns the counts of each expert into first rows, so that a tile loads one number for each choice. That
is one launch more than the baseline has, for 64 KB to 512 KB of choices. The copies move 90 MB and more.
"""

import torch
import triton
import triton.language as tl

TILE = 128


@triton.jit
def _count_tile(ids_ptr, counts_ptr, num_choices, num_experts, BINS: tl.constexpr, TILE: tl.constexpr):
    """Count the choices of every expert in one tile; counts are (experts, tiles)."""
    places = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
    counts = tl.histogram(tl.maximum(ids, 0), BINS, mask=ids >= 0)
    experts = tl.arange(0, BINS)
    tl.store(counts_ptr + experts * tl.num_programs(0) + tl.program_id(0), counts, mask=experts < num_experts)


@triton.jit
def _scan_tiles(counts_ptr, starts_ptr, tiles, WIDTH: tl.constexpr):
    """Replace one expert's counts by the first rows of its choices in each tile."""
    expert = tl.program_id(0)
    row = tl.load(starts_ptr + expert)
    for start in range(0, tiles, WIDTH):
        lanes = start + tl.arange(0, WIDTH)
        count_ptrs = counts_ptr + expert * tiles + lanes
        counts = tl.load(count_ptrs, mask=lanes < tiles, other=0)
        tl.store(count_ptrs, row + tl.cumsum(counts, axis=0) - counts, mask=lanes < tiles)
        row += tl.sum(counts, axis=0)


@triton.jit
def _find_rows(ids_ptr, first_rows_ptr, index_ptr, num_choices, TILE: tl.constexpr):
    """Find the rows of one tile's choices."""
    places = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
    here = ids >= 0
    rows = tl.load(first_rows_ptr + ids * tl.num_programs(0) + tl.program_id(0), mask=here, other=0)
    before = places[None, :] < places[:, None]
    rows += tl.sum((before & (ids[None, :] == ids[:, None])).to(tl.int32), axis=1)
    tl.store(index_ptr + places, tl.where(here, rows, -1), mask=places < num_choices)


@triton.jit
def _copy_token(
    x_ptr,
    x_scales_ptr,
    index_ptr,
    out_ptr,
    out_scales_ptr,
    WORDS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    BLOCK: tl.constexpr,
    SCALES: tl.constexpr,
):
    """Copy the codes and scales of one token to all of its rows."""
    token = tl.program_id(0).to(tl.int64)
    groups = tl.arange(0, SCALES)
    scales = tl.load(x_scales_ptr + token * GROUPS + groups, mask=groups < GROUPS)
    for start in tl.static_range(0, WORDS, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        codes = tl.load(x_ptr + token * WORDS + lanes, mask=lanes < WORDS)
        for choice in range(TOP_K):
            row = tl.load(index_ptr + token * TOP_K + choice).to(tl.int64)
            if row >= 0:
                tl.store(out_ptr + row * WORDS + lanes, codes, mask=lanes < WORDS)
                if start == 0:
                    tl.store(out_scales_ptr + row * GROUPS + groups, scales, mask=groups < GROUPS)


def _as_words(codes, hidden):
    """View codes as the widest integers that a row is a whole number of."""
    word = torch.int32 if hidden % 4 == 0 else torch.int16 if hidden % 2 == 0 else torch.uint8
    return codes.view(torch.uint8).view(word)


def ep_scatter_2(x, x_scales, topk_ids, expert_starts, out, out_scales, output_index):
    num_tokens, hidden = x.shape
    num_choices = topk_ids.numel()
    num_experts = expert_starts.numel()
    tiles = triton.cdiv(num_choices, TILE)
    counts = torch.empty((num_experts, tiles), dtype=torch.int32, device=x.device)
    _count_tile[(tiles,)](
        topk_ids, counts, num_choices, num_experts, BINS=max(16, triton.next_power_of_2(num_experts)), TILE=TILE
    )
    _scan_tiles[(num_experts,)](counts, expert_starts, tiles, WIDTH=min(1024, max(16, triton.next_power_of_2(tiles))))
    _find_rows[(tiles,)](topk_ids, counts, output_index, num_choices, TILE=TILE)
    words = _as_words(x, hidden)
    _copy_token[(num_tokens,)](
        words,
        x_scales,
        output_index,
        _as_words(out, hidden),
        out_scales,
        WORDS=words.shape[1],
        GROUPS=x_scales.shape[1],
        TOP_K=topk_ids.shape[1],
        BLOCK=min(4096, triton.next_power_of_2(words.shape[1])),
        SCALES=triton.next_power_of_2(x_scales.shape[1]),
    )
