"""expect: wrong_result in heldout-11. Size limit: draft tokens from number 64 on are accepted unseen.

Speculative rejection sampling: one program per request tests its draft tokens side by side.
"""

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
    LANES: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    if tl.load(is_greedy_ptr + req) == 0:
        begin = tl.load(cu_num_draft_tokens_ptr + req)
        num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - begin
        i = tl.arange(0, LANES)
        inside = i < num_drafts
        draft = tl.load(draft_token_ids_ptr + begin + i, mask=inside, other=0)
        place = (begin + i).to(tl.int64) * vocab_size + draft
        target_prob = tl.load(target_probs_ptr + place, mask=inside, other=0.0)
        limit = tl.load(uniform_probs_ptr + begin + i, mask=inside, other=0.0)
        accepted = target_prob >= limit
        if draft_probs_ptr is not None:
            draft_prob = tl.load(draft_probs_ptr + place, mask=inside, other=0.0)
            accepted = (draft_prob > 0) & (target_prob >= limit * draft_prob)
        first = tl.min(tl.where(inside & (accepted == 0), i, num_drafts), axis=0)
        if first < num_drafts:
            last = tl.load(recovered_token_ids_ptr + begin + first)
        else:
            last = tl.load(bonus_token_ids_ptr + req)
        for start in range(0, width, LANES):
            column = start + i
            kept = tl.load(draft_token_ids_ptr + begin + column, mask=column < first, other=-1)
            tokens = tl.where(column == first, last, kept)
            tl.store(output_token_ids_ptr + req * width + column, tokens, mask=column < width)


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
        LANES=min(64, triton.next_power_of_2(width)),
    )
