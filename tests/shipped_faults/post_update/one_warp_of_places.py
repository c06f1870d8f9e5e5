"""expect: wrong_result in heldout-16. Size limit: at most 32 sampled tokens of a request have a place.

State after sampling: one program per request, all of its sampled tokens at once.
"""

import triton
import triton.language as tl


@triton.jit
def update_request(
    sampled_token_ids_ptr,
    num_sampled_ptr,
    num_rejected_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    num_computed_ptr,
    last_sampled_ptr,
    output_counts_ptr,
    token_ids_ptr,
    seq_lens_ptr,
    max_sampled,
    vocab_size,
    max_len,
    PLACES: tl.constexpr,
):
    request = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    count = tl.load(num_sampled_ptr + request)
    query = tl.load(cu_seqlens_ptr + request + 1) - tl.load(cu_seqlens_ptr + request)
    rejected = tl.load(num_rejected_ptr + request)
    places = tl.arange(0, PLACES)
    sampled = places < count
    tokens = tl.load(sampled_token_ids_ptr + request * max_sampled + places, mask=sampled, other=0)
    total = tl.load(seq_lens_ptr + slot)
    computed = tl.load(num_computed_ptr + slot)
    # Added atomically, since one token may come up twice.
    tl.atomic_add(output_counts_ptr + slot * vocab_size + tokens, 1, mask=sampled, sem="relaxed")
    tl.store(token_ids_ptr + slot * max_len + total + places, tokens, mask=sampled)
    if count > 0:
        last = tl.sum(tl.where(places == count - 1, tokens, 0), axis=0)
        tl.store(last_sampled_ptr + slot, last)
        tl.store(seq_lens_ptr + slot, total + count)
    tl.store(num_computed_ptr + slot, computed + query - rejected)


def post_update(
    sampled_token_ids,
    num_sampled,
    num_rejected,
    cu_seqlens,
    idx_mapping,
    num_computed_tokens,
    last_sampled_tokens,
    output_counts,
    token_ids,
    seq_lens,
):
    num_reqs, max_sampled = sampled_token_ids.shape
    update_request[(num_reqs,)](
        sampled_token_ids,
        num_sampled,
        num_rejected,
        cu_seqlens,
        idx_mapping,
        num_computed_tokens,
        last_sampled_tokens,
        output_counts,
        token_ids,
        seq_lens,
        max_sampled,
        output_counts.shape[1],
        token_ids.shape[1],
        PLACES=min(32, triton.next_power_of_2(max_sampled)),  # one for each lane of the warp
        num_warps=1,
    )
