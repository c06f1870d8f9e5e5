"""Tokens of each expert: one program per expert walks all choices."""

import triton
import triton.language as tl


@triton.jit
def count_choices(ids_ptr, map_ptr, counts_ptr, num_choices, HAS_MAP: tl.constexpr, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    found = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_choices, BLOCK):
        places = start + tl.arange(0, BLOCK)
        ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
        if HAS_MAP:
            ids = tl.load(map_ptr + ids, mask=ids >= 0, other=-1)
        found += (ids == expert).to(tl.int32)
    tl.store(counts_ptr + expert, tl.sum(found, axis=0))


def count_expert_tokens(topk_ids, expert_map, expert_num_tokens):
    count_choices[(expert_num_tokens.numel(),)](
        topk_ids,
        expert_map,
        expert_num_tokens,
        topk_ids.numel(),
        HAS_MAP=expert_map is not None,
        BLOCK=4096,
        num_warps=8,
    )
