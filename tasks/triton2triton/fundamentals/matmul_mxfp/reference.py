"""Matrix product of microscaling operands (Open Compute Project, Microscaling Formats 1.0, 2023)."""

from typing import Any

import torch

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BLOCK = 32


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Elements of 8 bits that are normal numbers, or any code of 4 bits; scales between 2**-3 and 2**3."""
    made = {}
    for name, rows in (("a", case["M"]), ("b", case["N"])):
        bits = case[f"{name}_bits"]
        made[name] = _codes((count, rows, case["K"] * bits // 8), bits, generator)
        blocks = (count, rows, case["K"] // BLOCK)
        scales = torch.randint(124, 131, blocks, generator=generator, device=generator.device)
        made[f"{name}_scales"] = scales.to(torch.uint8)
    return made


def reference(
    a: torch.Tensor, b: torch.Tensor, a_scales: torch.Tensor, b_scales: torch.Tensor, a_bits: int, b_bits: int
) -> torch.Tensor:
    """a: (M, K * a_bits / 8); b: (N, K * b_bits / 8); a_scales: (M, K / 32); b_scales: (N, K / 32); out: (M, N)."""
    return _decode(a, a_scales, a_bits) @ _decode(b, b_scales, b_bits).T


def _decode(codes: torch.Tensor, scales: torch.Tensor, bits: int) -> torch.Tensor:
    """The numbers of one operand, (rows, K), float64."""
    if bits == 8:
        elements = codes.view(torch.float8_e4m3fn).double()
    else:
        table = torch.tensor([*E2M1, *(-value for value in E2M1)], dtype=torch.float64, device=codes.device)
        elements = table[torch.stack([codes & 15, codes >> 4], dim=-1).flatten(-2).long()]
    return elements * torch.exp2(scales.double() - 127).repeat_interleave(BLOCK, dim=-1)


def _codes(shape: tuple[int, ...], bits: int, generator: torch.Generator) -> torch.Tensor:
    """Pairs of any 4-bit codes, each of which is a number, or normal numbers in float8_e4m3fn, none of them a NaN."""
    device = generator.device
    if bits == 4:
        return torch.randint(0, 256, shape, generator=generator, device=device, dtype=torch.uint8)
    return torch.randn(shape, generator=generator, device=device).to(torch.float8_e4m3fn).view(torch.uint8)
