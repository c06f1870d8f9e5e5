"""Sampled and drafted tokens of a request at once, in two dependent rounds of loads.

The baseline's program stores a request's tokens one after the other, and each draft is loaded after the store of the
one before: 64 drafts are 64 waits for memory, behind those for slot, lengths and sampled token. Here one warp loads
slot, offsets and length together, and then the sampled token, all drafts and the prompt's length. Drafts are loaded
whether or not the prompt has been computed, so that no load waits for that comparison; stores are masked by it.
"""

import triton
import triton.language as tl


@triton.jit
def _combine_request(
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
    WIDTH: tl.constexpr,
):
    req = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    first_logit = tl.load(cu_num_logits_ptr + req)
    num_logits = tl.load(cu_num_logits_ptr + req + 1) - first_logit
    first_place = tl.load(cu_seqlens_ptr + req + 1) - num_logits
    seq_len = tl.load(seq_lens_ptr + req)
    prefill_len = tl.load(prefill_lens_ptr + slot)
    sampled = tl.load(last_sampled_tokens_ptr + slot)
    i = tl.arange(0, WIDTH)
    drafts = tl.load(draft_token_ids_ptr + slot * max_spec_len + i - 1, mask=(i > 0) & (i < num_logits), other=0)
    tokens = tl.where(i == 0, sampled, drafts).to(tl.int32)
    tl.store(logits_indices_ptr + first_logit + i, (first_place + i).to(tl.int64), mask=i < num_logits)
    tl.store(input_ids_ptr + first_place + i, tokens, mask=(i < num_logits) & (seq_len > prefill_len))


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
    max_spec_len = draft_token_ids.shape[1]
    _combine_request[(idx_mapping.numel(),)](
        input_ids,
        last_sampled_tokens,
        draft_token_ids,
        cu_seqlens,
        cu_num_logits,
        seq_lens,
        prefill_lens,
        idx_mapping,
        logits_indices,
        max_spec_len,
        WIDTH=max(32, triton.next_power_of_2(max_spec_len + 1)),
        num_warps=1,
    )
