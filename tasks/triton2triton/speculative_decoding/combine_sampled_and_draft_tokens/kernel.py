"""Sampled and drafted tokens: one program per request, one token after the other."""

import triton
import triton.language as tl


@triton.jit
def combine_request(
    input_ids_ptr,
    last_sampled_tokens_ptr,
    draft_token_ids_ptr,
    cu_seqlens_ptr,
    cu_num_logits_ptr,
    seq_lens_ptr,
    prefill_lens_ptr,
    idx_mapping_ptr,
    logits_indices_ptr,
    max_spec_len,
):
    req = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    first_logit = tl.load(cu_num_logits_ptr + req)
    num_logits = tl.load(cu_num_logits_ptr + req + 1) - first_logit
    first_place = tl.load(cu_seqlens_ptr + req + 1) - num_logits
    for i in range(num_logits):
        tl.store(logits_indices_ptr + first_logit + i, first_place + i)
    if tl.load(seq_lens_ptr + req) > tl.load(prefill_lens_ptr + slot):
        tl.store(input_ids_ptr + first_place, tl.load(last_sampled_tokens_ptr + slot).to(tl.int32))
        for i in range(num_logits - 1):
            draft = tl.load(draft_token_ids_ptr + slot * max_spec_len + i)
            tl.store(input_ids_ptr + first_place + 1 + i, draft.to(tl.int32))


def combine_sampled_and_draft_tokens(
    input_ids,
    last_sampled_tokens,
    draft_token_ids,
    cu_seqlens,
    cu_num_logits,
    seq_lens,
    prefill_lens,
    idx_mapping,
    logits_indices,
):
    combine_request[(idx_mapping.numel(),)](
        input_ids,
        last_sampled_tokens,
        draft_token_ids,
        cu_seqlens,
        cu_num_logits,
        seq_lens,
        prefill_lens,
        idx_mapping,
        logits_indices,
        draft_token_ids.shape[1],
    )
