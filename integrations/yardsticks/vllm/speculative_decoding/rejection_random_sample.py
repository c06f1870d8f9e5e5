"""vLLM's random rejection. It expects rows of -1, which a kernel of ours writes first; its time counts."""

import triton
import triton.language as tl
from vllm.v1.sample.rejection_sampler import rejection_random_sample_kernel


@triton.jit
def clear_rows(rows, is_greedy, length, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    if tl.load(is_greedy + row) != 0:
        return
    tl.store(rows + row * length + column, tl.full((BLOCK,), -1, tl.int32), mask=column < length)


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
    requests, length = output_token_ids.shape
    clear_rows[(requests,)](output_token_ids, is_greedy, length, triton.next_power_of_2(length))
    rejection_random_sample_kernel[(requests,)](
        output_token_ids,
        cu_num_draft_tokens[1:],
        draft_token_ids,
        draft_probs,
        target_probs,
        bonus_token_ids,
        recovered_token_ids,
        uniform_probs,
        is_greedy,
        length - 1,
        target_probs.shape[1],
        None,
        NO_DRAFT_PROBS=draft_probs is None,
        SYNTHETIC_MODE=False,
    )
