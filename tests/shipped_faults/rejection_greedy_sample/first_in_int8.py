"""expect: wrong_result in heldout-11. Integer range: the place of the first wrong draft has 8 bits.

Greedy speculative rejection sampling: one program per request, all places at once.
"""

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
    PLACES: tl.constexpr,
):
    req = tl.program_id(0)
    wanted = True
    if is_greedy_ptr is not None:
        wanted = tl.load(is_greedy_ptr + req) != 0
    if wanted:
        begin = tl.load(cu_num_draft_tokens_ptr + req)
        num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - begin
        places = tl.arange(0, PLACES)
        drafted = places < num_drafts
        targets = tl.load(target_token_ids_ptr + begin + places, mask=drafted, other=0).to(tl.int32)
        drafts = tl.load(draft_token_ids_ptr + begin + places, mask=drafted, other=0)
        # The place up to which tokens count; behind the drafts, it is that of the bonus.
        stops = tl.where(drafted & (targets != drafts), places, num_drafts).to(tl.int8)
        first = tl.min(stops, axis=0).to(tl.int32)
        tokens = tl.where(drafted, targets, tl.load(bonus_token_ids_ptr + req))
        tokens = tl.where(places <= first, tokens, -1)
        tl.store(output_token_ids_ptr + req * width + places, tokens, mask=places < width)


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
        PLACES=triton.next_power_of_2(width),
    )
