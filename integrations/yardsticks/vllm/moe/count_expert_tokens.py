"""vLLM's count of choices, with the launch parameters of its wrapper."""

import triton
from vllm.model_executor.layers.fused_moe.utils import _count_expert_num_tokens


def count_expert_tokens(topk_ids, expert_map, expert_num_tokens):
    _count_expert_num_tokens[(expert_num_tokens.shape[0],)](
        topk_ids,
        expert_num_tokens,
        expert_num_tokens.shape[0],
        topk_ids.numel(),
        expert_map,
        HAS_EXPERT_MAP=expert_map is not None,
        BLOCK_SIZE=triton.next_power_of_2(min(topk_ids.numel(), 1024)),
    )
