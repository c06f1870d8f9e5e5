"""Group-wise fp8 quantization (DeepSeek-V3 Technical Report, 2024), with scales that may be powers of two (UE8M0)."""

from typing import Any

import torch

from arena.semantics.quantize import factors_off_powers_of_two, fp8_codes, largest_of, power_of_two_scales, scales_of
from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Normal x; groups whose scale would be next to a power of two are made smaller."""
    groups = case["hidden"] // case["group_size"]
    shape = (count, case["num_tokens"], groups, case["group_size"])
    x = torch.empty(shape, dtype=case["dtype"], device=generator.device).normal_(generator=generator)
    make_uneven(x, generator)
    scales = scales_of(x, largest_of(case["fp8"]), case["eps"]).float()
    x *= factors_off_powers_of_two(scales).unsqueeze(-1).to(x.dtype)
    return {"x": x.flatten(-2)}


def reference(
    x: torch.Tensor, eps: float, use_ue8m0: bool, group_size: int, fp8: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, q: (num_tokens, hidden); scales: (num_tokens, hidden // group_size)."""
    groups = x.unflatten(-1, (-1, group_size))
    scales = scales_of(groups, largest_of(fp8), eps)
    if use_ue8m0:
        scales = power_of_two_scales(scales)
    return fp8_codes(groups / scales.unsqueeze(-1), fp8).flatten(-2), scales
