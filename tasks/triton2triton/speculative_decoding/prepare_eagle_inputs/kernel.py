"""EAGLE's first draft step: one program per request, block by block."""

import triton
import triton.language as tl


@triton.jit
def shift_request(
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
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + req)
    begin = tl.load(cu_seqlens_ptr + req)
    end = tl.load(cu_seqlens_ptr + req + 1) - tl.load(num_rejected_ptr + req)
    if tl.load(num_sampled_ptr + req) > 0:
        next_token = tl.load(last_sampled_tokens_ptr + slot).to(tl.int32)
    else:
        next_token = tl.load(next_prefill_tokens_ptr + slot)
    tl.store(eagle_input_ids_ptr + end - 1, next_token)
    for start in range(begin, end, BLOCK):
        places = start + tl.arange(0, BLOCK)
        tokens = tl.load(target_input_ids_ptr + places + 1, mask=places < end - 1, other=0)
        tl.store(eagle_input_ids_ptr + places, tokens, mask=places < end - 1)
        positions = tl.load(target_positions_ptr + places, mask=places < end, other=0)
        tl.store(eagle_positions_ptr + places, positions, mask=places < end)
    tl.store(last_token_indices_ptr + req, end - 1)


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
    shift_request[(num_sampled.numel(),)](
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
        BLOCK=64,
    )
