"""The table of targets, and the occupancy that follows from it."""

from __future__ import annotations

import pytest

from arena.errors import UsageError
from arena.platforms.toolchains.targets import TARGETS
from arena.task.options import architectures


def test_targets_are_parsed_from_lists_without_repetition() -> None:
    assert architectures(["gfx942,sm_90", "gfx950", "gfx942, "]) == ("gfx942", "sm_90", "gfx950")
    assert architectures([]) == ()


def test_an_unknown_target_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'gfx943', did you mean gfx94"):
        architectures(["gfx943"])
    with pytest.raises(UsageError, match="Known: gfx90a"):
        architectures(["mi300"])


def test_the_table_holds_both_vendors() -> None:
    for arch, facts in TARGETS.items():
        assert facts.arch == arch
        assert facts.vendor == ("amd" if arch.startswith("gfx") else "nvidia")
        assert facts.wave_size in (32, 64)
        assert facts.block_shared_bytes <= facts.shared_bytes
    assert TARGETS["gfx942"].wave_size == 64
    assert TARGETS["gfx950"].block_shared_bytes == 160 * 1024


@pytest.mark.parametrize(
    ("arch", "registers", "share"),
    [
        ("sm_90", 32, 1.0),
        ("sm_90", 33, 0.75),  # 40 of 512 a thread: 12 of 16 warps a scheduler
        ("sm_90", 255, 0.125),
        ("gfx942", 64, 1.0),
        ("gfx942", 65, 0.875),  # 72 of 512: 7 waves of 8
        ("gfx942", 512, 0.125),
        ("gfx1100", 96, 1.0),
        ("gfx1100", 97, 0.75),  # 120 of 1536: 12 waves of 16
    ],
)
def test_occupancy_by_registers(arch: str, registers: int, share: float) -> None:
    assert TARGETS[arch].occupancy(registers) == pytest.approx(share)


def test_shared_memory_bounds_occupancy_where_the_block_is_known() -> None:
    facts = TARGETS["gfx942"]
    assert facts.occupancy(16, shared_bytes=32 * 1024) == 1.0
    assert facts.occupancy(16, shared_bytes=32 * 1024, block_waves=4) == pytest.approx(8 / 32)
