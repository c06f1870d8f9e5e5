"""RMS norm of query and key heads (Qwen3, 2025), rotary embedding (Su et al., RoFormer, 2021) and paged cache write."""

import math
from typing import Any

import torch

from arena.semantics.paged import draw_slots


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cos_sin of angles anywhere in a turn; slot_mapping: distinct slots in random order, some of them -1."""
    shape = (count, case["max_position"], case["rotary_dim"] // 2)
    angles = 2 * math.pi * torch.rand(shape, generator=generator, device=generator.device)
    slots = draw_slots(case["num_blocks"] * case["block_size"], case["num_tokens"], count, generator)
    return {"cos_sin": torch.cat([angles.cos(), angles.sin()], dim=-1), "slot_mapping": slots}


def reference(
    qkv: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    cos_sin: torch.Tensor,
    positions: torch.Tensor,
    slot_mapping: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    eps: float,
    offset_weight: bool,
    interleaved: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """query: (num_tokens, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    num_kv_heads = key_cache.shape[2]
    query, key, value = qkv.split([qkv.shape[1] - 2 * num_kv_heads, num_kv_heads, num_kv_heads], dim=1)
    cos, sin = cos_sin[positions][:, None].chunk(2, dim=-1)

    def prepare(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        norm = torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)
        y = x / norm * (1 + weight if offset_weight else weight)
        rotated, rest = y[..., : cos_sin.shape[1]], y[..., cos_sin.shape[1] :]
        a, b = (rotated[..., ::2], rotated[..., 1::2]) if interleaved else rotated.chunk(2, dim=-1)
        turned = [a * cos - b * sin, b * cos + a * sin]
        return torch.cat([torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, -1), rest], -1)

    kept = slot_mapping >= 0
    slots = slot_mapping[kept]
    key_cache.flatten(0, 1)[slots] = prepare(key, key_weight)[kept].to(key_cache.dtype)
    value_cache.flatten(0, 1)[slots] = value[kept]
    return prepare(query, query_weight), key_cache, value_cache
