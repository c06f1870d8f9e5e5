"""Tokens of each expert in one pass over the choices: a histogram for each program, added up with atomics.

Integer additions commute, so that the order in which programs arrive makes no difference.
"""

import triton
import triton.language as tl

PROGRAMS = 512


@triton.jit
def _add_histogram(
    ids_ptr,
    map_ptr,
    counts_ptr,
    num_choices,
    num_local,
    HAS_MAP: tl.constexpr,
    BLOCK: tl.constexpr,
    BINS: tl.constexpr,
):
    bins = tl.arange(0, BINS)
    total = tl.zeros((BINS,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, num_choices, tl.num_programs(0) * BLOCK):
        places = start + tl.arange(0, BLOCK)
        ids = tl.load(ids_ptr + places, mask=places < num_choices, other=-1).to(tl.int32)
        if HAS_MAP:
            ids = tl.load(map_ptr + ids, mask=ids >= 0, other=-1)
        # What is not counted falls into the last bin, which no expert has.
        local = tl.where((ids >= 0) & (ids < num_local), ids, BINS - 1)
        total += tl.histogram(local, BINS)
    tl.atomic_add(counts_ptr + bins, total, mask=(bins < num_local) & (total > 0), sem="relaxed")


def count_expert_tokens(topk_ids, expert_map, expert_num_tokens):
    num_choices, num_local = topk_ids.numel(), expert_num_tokens.numel()
    block = 1024
    expert_num_tokens.zero_()
    _add_histogram[(min(PROGRAMS, triton.cdiv(num_choices, block)),)](
        topk_ids,
        expert_map,
        expert_num_tokens,
        num_choices,
        num_local,
        HAS_MAP=expert_map is not None,
        BLOCK=block,
        BINS=max(64, triton.next_power_of_2(num_local + 1)),
    )
