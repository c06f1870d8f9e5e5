"""Last tokens that count: one program per request."""

import triton
import triton.language as tl


@triton.jit
def find_last_token(cu_num_draft_tokens_ptr, valid_counts_ptr, cu_seqlens_ptr, sample_indices_ptr, num_rejected_ptr):
    req = tl.program_id(0)
    num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - tl.load(cu_num_draft_tokens_ptr + req)
    num_rejected = 0
    if num_drafts > 0:
        num_rejected = num_drafts + 1 - tl.load(valid_counts_ptr + req)
    tl.store(num_rejected_ptr + req, num_rejected)
    tl.store(sample_indices_ptr + req, tl.load(cu_seqlens_ptr + req + 1) - 1 - num_rejected)


def eagle_prepare_inputs_padded(cu_num_draft_tokens, valid_counts, cu_seqlens, sample_indices, num_rejected):
    find_last_token[(valid_counts.numel(),)](
        cu_num_draft_tokens, valid_counts, cu_seqlens, sample_indices, num_rejected
    )
