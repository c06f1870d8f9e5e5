"""Speculative rejection sampling: one program per request goes through its draft tokens until one is rejected."""

import triton
import triton.language as tl


@triton.jit
def accept_drafts(
    draft_token_ids_ptr,
    draft_probs_ptr,
    target_probs_ptr,
    bonus_token_ids_ptr,
    recovered_token_ids_ptr,
    uniform_probs_ptr,
    cu_num_draft_tokens_ptr,
    is_greedy_ptr,
    output_token_ids_ptr,
    width,
    vocab_size,
):
    req = tl.program_id(0).to(tl.int64)
    if tl.load(is_greedy_ptr + req) == 0:
        begin = tl.load(cu_num_draft_tokens_ptr + req)
        num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - begin
        output_ptr = output_token_ids_ptr + req * width
        rejected = 0
        for i in range(num_drafts):
            token = -1
            if rejected == 0:
                draft = tl.load(draft_token_ids_ptr + begin + i)
                place = (begin + i).to(tl.int64) * vocab_size + draft
                draft_prob = 1.0
                if draft_probs_ptr is not None:
                    draft_prob = tl.load(draft_probs_ptr + place)
                limit = tl.load(uniform_probs_ptr + begin + i) * draft_prob
                if (draft_prob > 0) & (tl.load(target_probs_ptr + place) >= limit):
                    token = draft
                else:
                    token = tl.load(recovered_token_ids_ptr + begin + i)
                    rejected = 1
            tl.store(output_ptr + i, token)
        bonus = tl.load(bonus_token_ids_ptr + req)
        tl.store(output_ptr + num_drafts, tl.where(rejected == 0, bonus, -1))
        for i in range(num_drafts + 1, width):
            tl.store(output_ptr + i, -1)


def rejection_random_sample(
    draft_token_ids,
    draft_probs,
    target_probs,
    bonus_token_ids,
    recovered_token_ids,
    uniform_probs,
    cu_num_draft_tokens,
    is_greedy,
    output_token_ids,
):
    num_reqs, width = output_token_ids.shape
    accept_drafts[(num_reqs,)](
        draft_token_ids,
        draft_probs,
        target_probs,
        bonus_token_ids,
        recovered_token_ids,
        uniform_probs,
        cu_num_draft_tokens,
        is_greedy,
        output_token_ids,
        width,
        target_probs.shape[1],
    )
