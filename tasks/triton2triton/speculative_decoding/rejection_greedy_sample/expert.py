"""Greedy rejection sampling with all tokens of a request loaded at once: two rounds of loads, whatever its length.

The baseline loads a pair of tokens, compares it and stores before it loads the next: as many waits one after another as
tokens agree, before them one for is_greedy and one for the offsets, after them one for the bonus token; and four warps
run what one thread decides. Here one warp loads is_greedy, the offsets and the bonus token together, then both tokens
of every place. The first difference is a minimum over the places, and the row is one store. 9000 tokens of all requests
are 108 KB, so that loading those after the first difference too costs less than one wait.
"""

import triton
import triton.language as tl


@triton.jit
def _follow_row(
    draft_token_ids_ptr,
    target_token_ids_ptr,
    bonus_token_ids_ptr,
    cu_num_draft_tokens_ptr,
    is_greedy_ptr,
    output_token_ids_ptr,
    width,
    WIDTH: tl.constexpr,
):
    req = tl.program_id(0)
    places = tl.arange(0, WIDTH)
    begin = tl.load(cu_num_draft_tokens_ptr + req)
    num_drafts = tl.load(cu_num_draft_tokens_ptr + req + 1) - begin
    bonus = tl.load(bonus_token_ids_ptr + req)
    wanted = places < width
    if is_greedy_ptr is not None:
        wanted = wanted & (tl.load(is_greedy_ptr + req) != 0)
    drafted = wanted & (places < num_drafts)
    target = tl.load(target_token_ids_ptr + begin + places, mask=drafted, other=-1).to(tl.int32)
    draft = tl.load(draft_token_ids_ptr + begin + places, mask=drafted, other=-1)
    first = tl.min(tl.where(drafted & (target != draft), places, num_drafts), axis=0)
    row = tl.where(places < num_drafts, target, bonus)
    row = tl.where(places <= first, row, -1)
    tl.store(output_token_ids_ptr + req * width + places, row, mask=wanted)


def rejection_greedy_sample(
    draft_token_ids, target_token_ids, bonus_token_ids, cu_num_draft_tokens, is_greedy, output_token_ids
):
    num_reqs, width = output_token_ids.shape
    _follow_row[(num_reqs,)](
        draft_token_ids,
        target_token_ids,
        bonus_token_ids,
        cu_num_draft_tokens,
        is_greedy,
        output_token_ids,
        width,
        WIDTH=triton.next_power_of_2(width),
        num_warps=1,
    )
