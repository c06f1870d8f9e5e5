"""vLLM's greedy rejection. It expects rows of -1, which a kernel of ours writes first; its time counts."""

import triton
import triton.language as tl
from vllm.v1.sample.rejection_sampler import rejection_greedy_sample_kernel


@triton.jit
def clear_rows(rows, is_greedy, length, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    if GIVEN:  # noqa: SIM102 - Triton would load in either case
        if tl.load(is_greedy + row) == 0:
            return
    tl.store(rows + row * length + column, tl.full((BLOCK,), -1, tl.int32), mask=column < length)


def rejection_greedy_sample(
    draft_token_ids, target_token_ids, bonus_token_ids, cu_num_draft_tokens, is_greedy, output_token_ids
):
    requests, length = output_token_ids.shape
    clear_rows[(requests,)](output_token_ids, is_greedy, length, is_greedy is not None, triton.next_power_of_2(length))
    rejection_greedy_sample_kernel[(requests,)](
        output_token_ids,
        cu_num_draft_tokens[1:],
        draft_token_ids,
        target_token_ids,
        bonus_token_ids,
        is_greedy,
        length - 1,
        None,
        None,
        SYNTHETIC_MODE=False,
    )
