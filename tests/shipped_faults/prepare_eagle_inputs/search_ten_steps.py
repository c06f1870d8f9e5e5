"""expect: wrong_result in heldout-10. Size limit: ten steps of a search find a request among 1024 at most.

EAGLE's first draft step: programs of 256 places, each of which finds its request by bisection of cu_seqlens.

Requests of very different lengths so share the work evenly.
"""

import triton
import triton.language as tl


@triton.jit
def shift_places(
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
    num_reqs,
    num_tokens,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < num_tokens
    # The last request that begins at or before each place lies in [low, high).
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.zeros((BLOCK,), tl.int32) + num_reqs
    for _ in range(STEPS):
        middle = (low + high) // 2
        before = tl.load(cu_seqlens_ptr + middle, mask=inside, other=0) <= places
        low = tl.where(before, middle, low)
        high = tl.where(before, high, middle)
    req = low
    end = tl.load(cu_seqlens_ptr + req + 1, mask=inside, other=0)
    end -= tl.load(num_rejected_ptr + req, mask=inside, other=0)
    kept = inside & (places < end)
    is_last = inside & (places == end - 1)
    slot = tl.load(idx_mapping_ptr + req, mask=is_last, other=0)
    sampled = tl.load(num_sampled_ptr + req, mask=is_last, other=0) > 0
    last_sampled = tl.load(last_sampled_tokens_ptr + slot, mask=is_last & sampled, other=0).to(tl.int32)
    next_prefill = tl.load(next_prefill_tokens_ptr + slot, mask=is_last, other=0)
    tokens = tl.load(target_input_ids_ptr + places + 1, mask=inside & (places < end - 1), other=0)
    tokens = tl.where(is_last, tl.where(sampled, last_sampled, next_prefill), tokens)
    tl.store(eagle_input_ids_ptr + places, tokens, mask=kept)
    positions = tl.load(target_positions_ptr + places, mask=kept, other=0)
    tl.store(eagle_positions_ptr + places, positions, mask=kept)
    tl.store(last_token_indices_ptr + req, places.to(tl.int64), mask=is_last)


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
    num_tokens = target_input_ids.numel()
    shift_places[(triton.cdiv(num_tokens, 256),)](
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
        num_sampled.numel(),
        num_tokens,
        STEPS=10,
        BLOCK=256,
    )
