"""Layout of experts' rows: one program per expert adds up the shares before its own, then writes its rows."""

import triton
import triton.language as tl


@triton.jit
def lay_out_expert(
    counts_ptr, m_indices_ptr, starts_ptr, num_experts, alignment, EXPERTS: tl.constexpr, BLOCK: tl.constexpr
):
    expert = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + experts, mask=experts < num_experts, other=0)
    shares = tl.cdiv(counts, alignment) * alignment
    begin = tl.sum(tl.where(experts < expert, shares, 0), axis=0)
    # One program more than experts: it finds the sum of all, and has no rows.
    tl.store(starts_ptr + expert, begin)
    if expert < num_experts:
        count = tl.load(counts_ptr + expert)
        share = tl.cdiv(count, alignment) * alignment
        for first in range(0, share, BLOCK):
            within = first + tl.arange(0, BLOCK)
            tl.store(m_indices_ptr + begin + within, tl.where(within < count, expert, -1), mask=within < share)


def ep_scatter_1(expert_num_tokens, m_indices, alignment, expert_starts):
    num_experts = expert_num_tokens.numel()
    lay_out_expert[(num_experts + 1,)](
        expert_num_tokens,
        m_indices,
        expert_starts,
        num_experts,
        alignment,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK=256,
    )
