"""A paged cache (Kwon et al., PagedAttention, 2023) whose rows hold key and value side by side."""

from typing import Any

import torch

from arena.semantics.paged import draw_slots


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slot_mapping: distinct slots in random order, some of them -1."""
    return {"slot_mapping": draw_slots(case["num_blocks"] * case["block_size"], case["num_tokens"], count, generator)}


def reference(
    key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor
) -> torch.Tensor:
    """key, value: (num_tokens, num_kv_heads, head_dim or value_dim); kv_cache: (num_blocks, block_size, heads, sum)."""
    kept = slot_mapping >= 0
    kv_cache.flatten(0, 1)[slot_mapping[kept]] = torch.cat([key[kept], value[kept]], dim=-1)
    return kv_cache
