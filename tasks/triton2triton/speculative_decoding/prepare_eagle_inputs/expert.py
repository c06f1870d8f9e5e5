"""EAGLE's first draft step in two dependent rounds of loads, 128 tokens a step.

The baseline's program waits for its offsets, then for num_sampled, then for the next token, and then twice for each 64
tokens: ids are stored before positions are loaded. Here offsets, slot and num_sampled are loaded together. All else
follows in one round: both candidates for the next token under masks, ids and positions of 128 tokens. Fewer than 512
requests share up to 512 programs: 8192 tokens of one request are one step in each of 64 programs, not 128 steps.
"""

import triton
import triton.language as tl

TILE = 128
PROGRAMS = 512


@triton.jit
def _shift_tiles(
    target_input_ids_ptr,
    target_positions_ptr,
    last_sampled_tokens_ptr,
    next_prefill_tokens_ptr,
    num_sampled_ptr,
    num_rejected_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    eagle_input_ids_ptr,
    eagle_positions_ptr,
    last_token_indices_ptr,
    strips,
    WIDTH: tl.constexpr,
):
    req = tl.program_id(0) // strips
    strip = tl.program_id(0) % strips
    slot = tl.load(idx_mapping_ptr + req)
    sampled = tl.load(num_sampled_ptr + req) > 0
    begin = tl.load(cu_seqlens_ptr + req)
    last = tl.load(cu_seqlens_ptr + req + 1) - tl.load(num_rejected_ptr + req) - 1
    last_sampled = tl.load(last_sampled_tokens_ptr + slot, mask=(strip == 0) & sampled, other=0)
    next_prefill = tl.load(next_prefill_tokens_ptr + slot, mask=(strip == 0) & (sampled == 0), other=0)
    for first in range(begin + strip * WIDTH, last + 1, strips * WIDTH):
        place = first + tl.arange(0, WIDTH)
        tokens = tl.load(target_input_ids_ptr + place + 1, mask=place < last)
        positions = tl.load(target_positions_ptr + place, mask=place <= last)
        tl.store(eagle_input_ids_ptr + place, tokens, mask=place < last)
        tl.store(eagle_positions_ptr + place, positions, mask=place <= last)
    if strip == 0:
        tl.store(last_token_indices_ptr + req, last)
        tl.store(eagle_input_ids_ptr + last, tl.where(sampled, last_sampled.to(tl.int32), next_prefill))


def prepare_eagle_inputs(
    target_input_ids,
    target_positions,
    last_sampled_tokens,
    next_prefill_tokens,
    num_sampled,
    num_rejected,
    cu_seqlens,
    idx_mapping,
    eagle_input_ids,
    eagle_positions,
    last_token_indices,
):
    num_reqs = num_sampled.numel()
    strips = max(1, min(triton.cdiv(target_input_ids.numel(), TILE), PROGRAMS // num_reqs))
    _shift_tiles[(num_reqs * strips,)](
        target_input_ids,
        target_positions,
        last_sampled_tokens,
        next_prefill_tokens,
        num_sampled,
        num_rejected,
        cu_seqlens,
        idx_mapping,
        eagle_input_ids,
        eagle_positions,
        last_token_indices,
        strips,
        WIDTH=TILE,
        num_warps=1,
    )
