"""Sizes and shares as text."""

from __future__ import annotations

from arena.reports import formats


def test_sizes_and_shares_as_text() -> None:
    assert [formats.size(count) for count in (0, 512, 1024, 1536, 163840)] == [
        "0 B",
        "512 B",
        "1 KiB",
        "1.5 KiB",
        "160 KiB",
    ]
    assert [formats.percent(share) for share in (None, 0.0, 0.125, 1.0)] == ["–", "0 %", "12.5 %", "100 %"]
