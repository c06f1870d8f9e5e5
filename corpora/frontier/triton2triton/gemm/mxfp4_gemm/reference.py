"""Matrix product in MXFP4 with dynamic quantization (Open Compute Project, Microscaling Formats 1.0, 2023)."""

import torch

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BLOCK = 32


def reference(x: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x: (M, K); qweight: (N, K / 2) uint8; scales: (N, K / 32) uint8; out: (M, N)."""
    signed = torch.tensor([*E2M1, *(-number for number in E2M1)], dtype=x.dtype, device=x.device)
    codes = torch.stack([qweight & 15, qweight >> 4], dim=-1).flatten(-2).int()
    powers = torch.ldexp(torch.ones_like(scales, dtype=x.dtype), scales.int() - 127)
    weight = signed[codes] * powers.repeat_interleave(BLOCK, dim=1)
    return _quantized(x) @ weight.T


def _quantized(x: torch.Tensor) -> torch.Tensor:
    groups = x.unflatten(-1, (-1, BLOCK))
    _, exponents = torch.frexp(groups.abs().amax(dim=-1, keepdim=True))
    power = torch.ldexp(torch.ones_like(groups[..., :1]), exponents - 3)
    numbers = torch.tensor(E2M1, dtype=x.dtype, device=x.device)
    middles = (numbers[1:] + numbers[:-1]) / 2
    magnitudes = (groups / power).abs()
    # A number between an even index and an odd one above it goes down, and up from an odd index.
    below, above = torch.bucketize(magnitudes, middles), torch.bucketize(magnitudes, middles, right=True)
    index = torch.where(below % 2 == 0, below, above)
    return (numbers[index] * groups.sign() * power).flatten(-2)
