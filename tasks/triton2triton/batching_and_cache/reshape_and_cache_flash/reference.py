"""Paged cache write (the cache of Kwon et al., PagedAttention, 2023) as one indexed assignment."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    """slot_mapping: distinct slots in random order, with -1 in (num_tokens + 5) // 8 random places."""
    tokens, slots = case["num_tokens"], case["num_blocks"] * case["block_size"]
    mapping = torch.randperm(slots, generator=generator, device=generator.device)[:tokens].clone()
    padding = torch.randperm(tokens, generator=generator, device=generator.device)[: (tokens + 5) // 8]
    mapping[padding] = -1
    return {"slot_mapping": mapping}


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
