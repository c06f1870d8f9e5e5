"""Greedy speculative rejection sampling: one program per request, token by token."""

import triton
import triton.language as tl


@triton.jit
def follow_target(
    draft_token_ids_ptr,
    target_token_ids_ptr,
    bonus_token_ids_ptr,
    cu_num_draft_tokens_ptr,
    is_greedy_ptr,
    output_token_ids_ptr,
    width,
):
    req = tl.program_id(0)
    wanted = True
    if is_greedy_ptr is not None:
        wanted = tl.load(is_greedy_ptr + req) != 0
    if wanted:
        begin = tl.load(cu_num_draft_tokens_ptr + req)
        num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - begin
        output_ptr = output_token_ids_ptr + req * width
        agreed = 1
        for i in range(num_drafts):
            token = -1
            if agreed != 0:
                token = tl.load(target_token_ids_ptr + begin + i).to(tl.int32)
                agreed = (token == tl.load(draft_token_ids_ptr + begin + i)).to(tl.int32)
            tl.store(output_ptr + i, token)
        bonus = tl.load(bonus_token_ids_ptr + req)
        tl.store(output_ptr + num_drafts, tl.where(agreed != 0, bonus, -1))
        for i in range(num_drafts + 1, width):
            tl.store(output_ptr + i, -1)


def rejection_greedy_sample(
    draft_token_ids, target_token_ids, bonus_token_ids, cu_num_draft_tokens, is_greedy, output_token_ids
):
    num_reqs, width = output_token_ids.shape
    follow_target[(num_reqs,)](
        draft_token_ids,
        target_token_ids,
        bonus_token_ids,
        cu_num_draft_tokens,
        is_greedy,
        output_token_ids,
        width,
    )
