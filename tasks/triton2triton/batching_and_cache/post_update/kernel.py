"""State after sampling: one program per request, one sampled token after the other."""

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
):
    request = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    count = tl.load(num_sampled_ptr + request)
    total = tl.load(seq_lens_ptr + slot)
    for i in range(count):
        token = tl.load(sampled_token_ids_ptr + request * max_sampled + i)
        # Added atomically, since the next token may be the same one, and its load must not overtake this store.
        tl.atomic_add(output_counts_ptr + slot * vocab_size + token, 1)
        tl.store(token_ids_ptr + slot * max_len + total + i, token)
    if count > 0:
        last = tl.load(sampled_token_ids_ptr + request * max_sampled + count - 1)
        tl.store(last_sampled_ptr + slot, last)
        tl.store(seq_lens_ptr + slot, total + count)
    query = tl.load(cu_seqlens_ptr + request + 1) - tl.load(cu_seqlens_ptr + request)
    computed = tl.load(num_computed_ptr + slot) + query - tl.load(num_rejected_ptr + request)
    tl.store(num_computed_ptr + slot, computed)


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
    )
