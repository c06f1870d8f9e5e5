"""Paged cache write (the cache of Kwon et al., PagedAttention, 2023) as one indexed assignment."""

from typing import Any

import torch

from arena.semantics.paged import draw_slots


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slot_mapping: distinct slots in random order, some of them -1."""
    return {"slot_mapping": draw_slots(case["num_blocks"] * case["block_size"], case["num_tokens"], count, generator)}


def reference(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """key, value: (num_tokens, num_kv_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    kept = slot_mapping >= 0
    slots = slot_mapping[kept]
    key_cache.flatten(0, 1)[slots] = key[kept]
    value_cache.flatten(0, 1)[slots] = value[kept]
    return key_cache, value_cache
