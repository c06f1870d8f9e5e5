"""Multimodal rotary position embedding (Wang et al., Qwen2-VL, 2024; on the rotation of Su et al., RoFormer, 2021)."""

import math
from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cos and sin of angles anywhere in a turn."""
    shape = (count, 3, case["num_tokens"], case["rotary_dim"] // 2)
    angles = 2 * math.pi * torch.rand(shape, generator=generator, device=generator.device)
    return {"cos": angles.cos(), "sin": angles.sin()}


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    section_t: int,
    section_h: int,
    interleaved: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key: (num_tokens, heads, head_dim); cos, sin: (3, num_tokens, rotary_dim / 2)."""
    axis = _axis_of_pairs(cos.shape[2], section_t, section_h, interleaved).to(cos.device)
    place = axis[None, None, :].expand(1, cos.shape[1], -1)
    own_cos, own_sin = (table.gather(0, place)[0, :, None] for table in (cos, sin))
    return _rotate(query, own_cos, own_sin), _rotate(key, own_cos, own_sin)


def _axis_of_pairs(half: int, section_t: int, section_h: int, interleaved: bool) -> torch.Tensor:
    pair = torch.arange(half)
    if not interleaved:
        return (pair >= section_t).long() + (pair >= section_t + section_h).long()
    height = (pair % 3 == 1) & (pair < 3 * section_h)
    width = (pair % 3 == 2) & (pair < 3 * (half - section_t - section_h))
    return height.long() + 2 * width.long()


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)
