"""A wider batch for parallel drafting in steps of up to 128 places, one warp a program.

The baseline's four warps write 32 places a step, so that three of them repeat the first one's work. A step's loads are
issued after the stores of the one before, which wait for their loads: 1532 places of a request are 48 such steps. Here
a warp has up to 128 places a step, and fewer than 512 requests share up to 512 programs: one step each. Requests of
few places have one step in both kernels, with the same loads behind each other; here a quarter of the warps issue them.
"""

import triton
import triton.language as tl

TILE = 128
PROGRAMS = 512


@triton.jit
def _expand_tiles(
    target_input_ids_ptr,
    target_positions_ptr,
    next_token_ids_ptr,
    num_rejected_ptr,
    cu_seqlens_ptr,
    padding_token_id,
    mask_token_id,
    draft_input_ids_ptr,
    draft_positions_ptr,
    kinds_ptr,
    sample_indices_ptr,
    num_extra,
    strips,
    SHIFT: tl.constexpr,
    WIDTH: tl.constexpr,
):
    req = tl.program_id(0) // strips
    strip = tl.program_id(0) % strips
    begin = tl.load(cu_seqlens_ptr + req)
    places = tl.load(cu_seqlens_ptr + req + 1) - begin + num_extra
    kept = places - tl.load(num_rejected_ptr + req)
    next_token = tl.load(next_token_ids_ptr + req)
    bonus = kept - num_extra - SHIFT
    first_position = tl.load(target_positions_ptr + begin)
    wider_begin = begin + req * num_extra
    for first in range(strip * WIDTH, places, strips * WIDTH):
        j = first + tl.arange(0, WIDTH)
        inside = j < places
        copied = tl.load(target_input_ids_ptr + begin + j + SHIFT, mask=j < bonus, other=0)
        further = tl.where(j == bonus, next_token, tl.where(j < kept, mask_token_id, padding_token_id))
        kinds = (j >= bonus).to(tl.int8) + (j > bonus).to(tl.int8) + (j >= kept).to(tl.int8)
        tl.store(kinds_ptr + wider_begin + j, kinds, mask=inside)
        tl.store(draft_input_ids_ptr + wider_begin + j, tl.where(j < bonus, copied, further), mask=inside)
        tl.store(draft_positions_ptr + wider_begin + j, tl.where(j < kept, first_position + j, 0), mask=inside)
    if strip == 0:
        tl.store(sample_indices_ptr + req, wider_begin + bonus)


def copy_and_expand_eagle_inputs(
    target_input_ids,
    target_positions,
    next_token_ids,
    num_rejected,
    cu_seqlens,
    shift_input_ids,
    padding_token_id,
    mask_token_id,
    draft_input_ids,
    draft_positions,
    kinds,
    sample_indices,
):
    num_reqs, total = next_token_ids.numel(), draft_input_ids.numel()
    # Twice the places that a request has on average, so that most requests have one step.
    width = min(TILE, max(32, triton.next_power_of_2(2 * total // num_reqs)))
    strips = max(1, min(triton.cdiv(total, width), PROGRAMS // num_reqs))
    _expand_tiles[(num_reqs * strips,)](
        target_input_ids,
        target_positions,
        next_token_ids,
        num_rejected,
        cu_seqlens,
        padding_token_id,
        mask_token_id,
        draft_input_ids,
        draft_positions,
        kinds,
        sample_indices,
        (total - target_input_ids.numel()) // num_reqs,
        strips,
        SHIFT=1 if shift_input_ids else 0,
        WIDTH=width,
        num_warps=1,
    )
