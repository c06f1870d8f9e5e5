"""Layout of experts' rows with several programs for an expert, a constant alignment and stores of 16 bytes.

The baseline has one program for each expert: 65 for 64 experts, which leaves half of a GPU's compute units idle. An
expert with 65536 tokens takes 256 steps of 1 KB one after the other. The alignment is an argument, so that each share
takes a division. Nothing says where an expert's rows begin, so that each store has 4 bytes.

Here the programs of all experts are about 1024. Those of one expert take its blocks of 4 KB in turn, so that 65536
tokens take four steps. The alignment is a constant: divisions by powers of two are shifts, and the compiler knows that
shares and beginnings are multiples of it.
"""

import triton
import triton.language as tl

BLOCK = 1024
ENOUGH_PROGRAMS = 1024


@triton.jit
def _lay_out_blocks(
    counts_ptr,
    m_indices_ptr,
    starts_ptr,
    num_experts,
    ALIGNMENT: tl.constexpr,
    EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + experts, mask=experts < num_experts, other=0)
    # Summing first and multiplying last shows the compiler that `begin` is a multiple of the alignment.
    begin = tl.sum(tl.where(experts < expert, tl.cdiv(counts, ALIGNMENT), 0), axis=0) * ALIGNMENT
    if tl.program_id(1) == 0:
        # One expert more than there are: it finds the sum of all, and has no rows.
        tl.store(starts_ptr + expert, begin)
    if expert < num_experts:
        count = tl.load(counts_ptr + expert)
        share = tl.cdiv(count, ALIGNMENT) * ALIGNMENT
        for first in range(tl.program_id(1) * BLOCK, share, tl.num_programs(1) * BLOCK):
            within = first + tl.arange(0, BLOCK)
            tl.store(m_indices_ptr + begin + within, tl.where(within < count, expert, -1), mask=within < share)


def ep_scatter_1(expert_num_tokens, m_indices, alignment, expert_starts):
    num_experts = expert_num_tokens.numel()
    splits = min(triton.cdiv(ENOUGH_PROGRAMS, num_experts), triton.cdiv(m_indices.numel(), BLOCK))
    _lay_out_blocks[(num_experts + 1, splits)](
        expert_num_tokens,
        m_indices,
        expert_starts,
        num_experts,
        ALIGNMENT=alignment,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK=BLOCK,
    )
