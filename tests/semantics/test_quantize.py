"""Scales that are powers of two, and how inputs keep away from where they jump."""

from __future__ import annotations

import torch

from arena.semantics.quantize import factors_off_powers_of_two, largest_of, power_of_two_scales


def test_scales_are_rounded_up_to_powers_of_two_and_powers_of_two_stay() -> None:
    scales = torch.tensor([1.0, 1.0 + 2**-23, 0.75, 0.5, 3.0, 2.0**-100, 448.0])
    assert power_of_two_scales(scales).tolist() == [1, 2, 1, 0.5, 4, 2.0**-100, 512]


def test_the_largest_magnitude_at_the_limit_keeps_the_smaller_scale() -> None:
    """3.5 is 448 / 128, so that 2**-7 still holds it; the next float above does not."""
    magnitudes = torch.tensor([3.5, 3.5 * (1 + 2**-22)])
    assert power_of_two_scales(magnitudes / largest_of(torch.float8_e4m3fn)).tolist() == [2.0**-7, 2.0**-6]


def test_groups_next_to_a_power_of_two_are_moved_and_others_are_not() -> None:
    scales = torch.tensor([1.0, 1.0005, 0.9995, 1.1, 0.9, 2.0**-9])
    factors = factors_off_powers_of_two(scales)
    assert factors.tolist() == [0.75, 0.75, 0.75, 1, 1, 0.75]
    assert set(factors_off_powers_of_two(scales * factors).tolist()) == {1}
