"""SwiGLU with limits (gpt-oss, 2025) and quantization to MXFP8 (OCP Microscaling Formats 1.0, 2023)."""

from typing import Any

import torch

from arena.semantics.quantize import factors_off_powers_of_two, fp8_codes
from arena.semantics.uneven import make_uneven

_MOST_WIDENED = 1 << 22


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Normal gates and ups; ups of groups whose largest magnitude would be next to a power of two are moved."""
    shape = (count, case["M"], case["N"], 2) if case["interleaved"] else (count, case["M"], 2, case["N"])
    x = torch.empty(shape, dtype=case["dtype"], device=generator.device)
    x.normal_(generator=generator).mul_(2.0)
    make_uneven(x, generator, std=2.0)
    # Rows of gates and ups, a few at a time, which keeps what is widened to float32 small.
    pairs = x.flatten(0, 1).transpose(1, 2) if case["interleaved"] else x.flatten(0, 1)
    for part in pairs.split(max(1, _MOST_WIDENED // (2 * case["N"]))):
        up = part[:, 1]
        values = _activate(part[:, 0].float(), up.float(), case["alpha"], case["limit"], case["shift"])
        largest = values.unflatten(-1, (-1, 32)).abs().amax(dim=-1)
        near = (factors_off_powers_of_two(largest) < 1).repeat_interleave(32, dim=-1)
        factor = up.float().clamp(-case["limit"], case["limit"]) + case["shift"]
        up.copy_(torch.where(near, 0.75 * factor - case["shift"], up.float()).to(up.dtype))
    return {"x": x.flatten(-2)}


def reference(
    x: torch.Tensor, alpha: float, limit: float, shift: float, interleaved: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (M, 2 * N); q: (M, N) float8_e4m3fn; scales: (M, N / 32) uint8."""
    gate, up = (x[:, ::2], x[:, 1::2]) if interleaved else x.chunk(2, dim=1)
    groups = _activate(gate, up, alpha, limit, shift).unflatten(-1, (-1, 32))
    _, exponents = torch.frexp(groups.abs().amax(dim=-1).clamp(min=torch.finfo(torch.float32).tiny))
    exponents = (exponents - 9).clamp(min=-127)
    codes = fp8_codes(torch.ldexp(groups, -exponents.unsqueeze(-1)), torch.float8_e4m3fn)
    return codes.flatten(-2), (exponents + 127).to(torch.uint8)


def _activate(gate: torch.Tensor, up: torch.Tensor, alpha: float, limit: float, shift: float) -> torch.Tensor:
    gate = gate.clamp(max=limit)
    return gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + shift)
