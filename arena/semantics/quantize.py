"""Quantization by the largest magnitude, and its reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

INT8_MAX = 127.0


def scales_of(groups: torch.Tensor, largest: float, least: float) -> torch.Tensor:
    """Scale of every group: its largest magnitude, at least `least`, over `largest`. groups: (..., group_size)."""
    return groups.abs().amax(dim=-1).clamp(min=least) / largest


def int8_codes(values: torch.Tensor) -> torch.Tensor:
    """Rounded to the nearest integer, ties to even, clamped to [-128, 127]."""
    import torch

    return torch.round(values).clamp(-128, 127).to(torch.int8)


def largest_of(fp8: torch.dtype) -> float:
    """Return the largest finite number of an 8-bit floating-point dtype: 448 or, of float8_e4m3fnuz, 240."""
    import torch

    return torch.finfo(fp8).max


def fp8_codes(values: torch.Tensor, fp8: torch.dtype) -> torch.Tensor:
    """Clamped to the finite range of `fp8` and rounded to it."""
    largest = largest_of(fp8)
    return values.clamp(-largest, largest).to(fp8)


def blockwise(values: torch.Tensor, scales: torch.Tensor, block_n: int, block_k: int) -> torch.Tensor:
    """values (N, K) times the scale of the block they lie in; what lies past the last block belongs to it.

    scales: (⌈N / block_n⌉, ⌈K / block_k⌉). The result has the scales' dtype.
    """
    import torch

    rows, columns = (
        (torch.arange(size, device=scales.device) // block).clamp(max=blocks - 1)
        for size, block, blocks in zip(values.shape, (block_n, block_k), scales.shape, strict=True)
    )
    return values.to(scales.dtype) * scales[rows][:, columns]


def power_of_two_scales(scales: torch.Tensor) -> torch.Tensor:
    """The least power of two that is not below each scale (UE8M0, OCP Microscaling Formats 1.0); scales above 0."""
    import torch

    mantissa, exponent = torch.frexp(scales)
    return torch.ldexp(torch.ones_like(scales), exponent - (mantissa == 0.5).to(exponent.dtype))


def factors_off_powers_of_two(scales: torch.Tensor, margin: float = 1e-3) -> torch.Tensor:
    """What to multiply each group by so that no scale lies within `margin` of a power of two: 1, or else 3/4.

    For `make_inputs`: rounding a scale up to a power of two jumps there, so that a last bit would decide.
    """
    import torch

    distance = torch.log2(scales.clamp(min=torch.finfo(scales.dtype).tiny))
    return torch.where((distance - distance.round()).abs() < 2 * margin, 0.75, 1.0).to(scales.dtype)
