"""Uneven draws: what they do to normal data, and that they stay within what a dtype holds."""

from __future__ import annotations

import pytest
import torch

from arena.semantics.uneven import make_uneven

SETS = 64


def drawn(seed: int, shape: tuple[int, ...] = (24, 512), dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.empty((SETS, *shape), dtype=dtype).normal_(generator=generator)
    make_uneven(values, generator)
    return values


def changed(seed: int) -> torch.Tensor:
    """Which sets are not what the generator gave first."""
    plain = torch.empty((SETS, 24, 512)).normal_(generator=torch.Generator().manual_seed(seed))
    return (drawn(seed) != plain).flatten(1).any(dim=1)


def test_about_three_quarters_of_the_sets_change_and_the_others_do_not() -> None:
    shares = [float(changed(seed).float().mean()) for seed in range(12)]
    assert all(0.5 < share < 0.95 for share in shares)


def test_the_same_generator_gives_the_same_draw() -> None:
    assert torch.equal(drawn(3), drawn(3))


def test_every_pattern_comes_up() -> None:
    """Outliers in single rows, large tiles, a scale for each position, an offset for each row."""
    outliers = tiles = scales = offsets = 0
    for seed in range(40):
        values = drawn(seed)[changed(seed)]
        large = values.abs() > 6
        outliers += 0 < float(large.float().mean()) < 0.005
        tiles += float(values.std(dim=(1, 2)).max()) > 4
        scales += float((values.std(dim=1).log().std(dim=1)).median()) > 0.5
        offsets += float(values.mean(dim=2).abs().median()) > 0.3
    assert min(outliers, tiles, scales, offsets) >= 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_values_stay_finite(dtype: torch.dtype) -> None:
    for seed in range(20):
        assert bool(drawn(seed, dtype=dtype).isfinite().all())


def test_float16_leaves_room_for_a_product_of_two() -> None:
    """The sum over a tile of products of two such values must not overflow."""
    greatest = max(float(drawn(seed, dtype=torch.float16).abs().max()) for seed in range(20))
    assert 16 * greatest**2 / 512**0.5 < 65504


@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (0, 8)])
def test_what_is_too_small_for_a_pattern_stays_as_it_is(shape: tuple[int, ...]) -> None:
    values = torch.ones(SETS, *shape)
    make_uneven(values, torch.Generator().manual_seed(0))
    assert bool((values == 1).all())


def test_deviations_are_scaled_around_the_mean() -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        values = torch.full((SETS, 24, 512), 7.0)
        make_uneven(values, generator, mean=7.0, std=0.0)
        assert torch.allclose(values, torch.full_like(values, 7.0))
