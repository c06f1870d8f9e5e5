"""SwiGLU (Shazeer, 2020) of batched experts and group-wise fp8 quantization (DeepSeek-V3 Technical Report, 2024)."""

from typing import Any

import torch
from torch.nn.functional import silu

from arena.semantics.quantize import factors_off_powers_of_two, fp8_codes, largest_of, power_of_two_scales, scales_of
from arena.semantics.uneven import make_uneven

_MOST_WIDENED = 1 << 26


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Normal gates and ups; ups of groups whose scale would be next to a power of two are made smaller."""
    experts, tokens, width = case["num_experts"], case["max_tokens"], case["intermediate"]
    x = torch.empty((count, experts, tokens, 2, width), dtype=case["dtype"], device=generator.device)
    x.normal_(generator=generator)
    make_uneven(x, generator)
    largest = largest_of(case["fp8"])
    at_once = max(1, _MOST_WIDENED // (tokens * 2 * width))
    for part in x.flatten(0, 1).split(at_once):  # a few experts at a time keep what is widened to float32 small
        gate, up = part.unflatten(-1, (-1, case["group_size"])).unbind(2)
        scales = scales_of(silu(gate.float()) * up.float(), largest, case["eps"])
        up *= factors_off_powers_of_two(scales).unsqueeze(-1).to(up.dtype)
    return {"x": x.flatten(-2)}


def reference(
    x: torch.Tensor,
    expert_num_tokens: torch.Tensor,
    q: torch.Tensor,
    scales: torch.Tensor,
    eps: float,
    use_ue8m0: bool,
    group_size: int,
    fp8: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (num_experts, max_tokens, 2 * intermediate); q: (…, intermediate); scales: (…, intermediate / group_size)."""
    gate, up = x.chunk(2, dim=-1)
    groups = (silu(gate) * up).unflatten(-1, (-1, group_size))
    found = scales_of(groups, largest_of(fp8), eps)
    if use_ue8m0:
        found = power_of_two_scales(found)
    codes = fp8_codes(groups / found.unsqueeze(-1), fp8).flatten(-2).to(q.dtype)
    used = torch.arange(x.shape[1], device=x.device) < expert_num_tokens.unsqueeze(1)
    return torch.where(used.unsqueeze(-1), codes, q), torch.where(used.unsqueeze(-1), found, scales)
