"""expect: wrong_result in heldout-09. Sentinel: a token whose id is the mask's is taken for a mask.

A wider batch for parallel drafting: one program per request, block by block.
"""

import triton
import triton.language as tl


@triton.jit
def expand_request(
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
    SHIFT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0)
    begin = tl.load(cu_seqlens_ptr + req)
    length = tl.load(cu_seqlens_ptr + req + 1) - begin
    kept = length - tl.load(num_rejected_ptr + req) + num_extra
    bonus = kept - num_extra - SHIFT
    next_token = tl.load(next_token_ids_ptr + req)
    first_position = tl.load(target_positions_ptr + begin)
    wider_begin = begin + req * num_extra
    for start in range(0, length + num_extra, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < length + num_extra
        tokens = tl.load(target_input_ids_ptr + begin + j + SHIFT, mask=j < bonus, other=0)
        tokens = tl.where(j == bonus, next_token, tokens)
        tokens = tl.where(j > bonus, mask_token_id, tokens)
        tokens = tl.where(j >= kept, padding_token_id, tokens)
        kinds = tl.where(j < bonus, 0, tl.where(j == bonus, 1, 3))
        kinds = tl.where(tokens == mask_token_id, 2, kinds)
        tl.store(draft_input_ids_ptr + wider_begin + j, tokens, mask=inside)
        tl.store(draft_positions_ptr + wider_begin + j, tl.where(j < kept, first_position + j, 0), mask=inside)
        tl.store(kinds_ptr + wider_begin + j, kinds.to(tl.int8), mask=inside)
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
    num_reqs = next_token_ids.numel()
    num_extra = (draft_input_ids.numel() - target_input_ids.numel()) // num_reqs
    expand_request[(num_reqs,)](
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
        num_extra,
        SHIFT=1 if shift_input_ids else 0,
        BLOCK=32,
    )
