"""Sizes, shares and the line of an explanation that says most."""

from __future__ import annotations

import pytest

from arena.analysis import formats


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("one sentence", "one sentence"),
        (
            "In file included from a.h:1\na.hip:3:7: error: no member\n   3 | x.y\n1 error generated.\n",
            "a.hip:3:7: error: no member",
        ),
        (
            "ptxas x.ptx, line 9; error   : Unknown symbol\nptxas fatal   : aborted",
            "ptxas x.ptx, line 9; error   : Unknown symbol",
        ),
        ("a note\nLLVM ERROR: Cannot select: intrinsic\nStack dump:", "LLVM ERROR: Cannot select: intrinsic"),
        (
            "Traceback (most recent call last):\n  File 'k.py', line 3\nValueError: fp8e4nv not supported",
            "ValueError: fp8e4nv not supported",
        ),
    ],
)
def test_the_telling_line(text: str, line: str) -> None:
    assert formats.telling_line(text) == line


def test_a_long_line_is_cut() -> None:
    cut = formats.telling_line("x" * 500)
    assert len(cut) < 120
    assert cut.endswith("x…")


def test_sizes_and_shares_as_text() -> None:
    assert [formats.size(count) for count in (0, 512, 1024, 1536, 163840)] == [
        "0 B",
        "512 B",
        "1 KiB",
        "1.5 KiB",
        "160 KiB",
    ]
    assert [formats.percent(share) for share in (None, 0.0, 0.125, 1.0)] == ["–", "0 %", "12.5 %", "100 %"]
