"""Tokens of each expert: one program per expert and stretch of the choices adds up what it finds there."""

import triton
import triton.language as tl

STRETCH = 65536


@triton.jit
def count_choices(
    ids_ptr,
    map_ptr,
    counts_ptr,
    num_choices,
    HAS_MAP: tl.constexpr,
    STRETCH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert = tl.program_id(0)
    begin = tl.program_id(1) * STRETCH
    found = tl.zeros((BLOCK,), tl.int32)
    for start in range(begin, min(begin + STRETCH, num_choices), BLOCK):
        places = start + tl.arange(0, BLOCK)
        ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1)
        if HAS_MAP:
            ids = tl.load(map_ptr + ids, mask=ids >= 0, other=-1)
        found += (ids == expert).to(tl.int32)
    tl.atomic_add(counts_ptr + expert, tl.sum(found, axis=0))


def count_expert_tokens(topk_ids, expert_map, expert_num_tokens):
    num_choices = topk_ids.numel()
    expert_num_tokens.zero_()
    count_choices[(expert_num_tokens.numel(), triton.cdiv(num_choices, STRETCH))](
        topk_ids,
        expert_map,
        expert_num_tokens,
        num_choices,
        HAS_MAP=expert_map is not None,
        STRETCH=STRETCH,
        BLOCK=4096,
        num_warps=8,
    )
