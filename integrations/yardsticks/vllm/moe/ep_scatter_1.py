"""vLLM's first part of a scatter to experts, with the launch parameters of its wrapper.

The engine expects -1 in rows of padding, and gives no end. A kernel of ours writes both, and its time counts.
"""

import triton
import triton.language as tl
from vllm.model_executor.layers.fused_moe.deep_gemm_utils import _fwd_kernel_ep_scatter_1


@triton.jit
def padding(counts, starts, rows, alignment, experts, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    count = tl.load(counts + expert)
    start = tl.load(starts + expert)
    end = start + (count + alignment - 1) // alignment * alignment
    row = start + count + tl.arange(0, BLOCK)
    tl.store(rows + row, tl.full((BLOCK,), -1, tl.int32), mask=row < end)
    if expert == experts - 1:
        tl.store(starts + experts, end)


def ep_scatter_1(expert_num_tokens, m_indices, alignment, expert_starts):
    experts = expert_num_tokens.shape[0]
    _fwd_kernel_ep_scatter_1[(experts,)](
        expert_num_tokens,
        expert_starts,
        m_indices,
        num_experts=experts,
        num_warps=8,
        BLOCK_E=128,
        BLOCK_EXPERT_NUM=triton.next_power_of_2(experts),
        ALIGN_M=alignment,
        USE_PSUM_LAYOUT=False,
    )
    padding[(experts,)](
        expert_num_tokens, expert_starts, m_indices, alignment, experts, triton.next_power_of_2(alignment)
    )
