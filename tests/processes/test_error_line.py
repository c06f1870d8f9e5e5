"""The line of an explanation that says most, whoever wrote the explanation."""

from __future__ import annotations

import pytest

from arena.processes.error_line import LINE_CHARACTERS, first_error_line

TRACED = "Traceback (most recent call last):\n  File 'k.py', line 3\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("one sentence", "one sentence"),
        ("M=4: y: error is 41.7 × tolerance at [3]", "M=4: y: error is 41.7 × tolerance at [3]"),
        ("the host exited early with code 1; it printed: a\nb", "the host exited early with code 1; it printed: a"),
        (
            "In file included from a.h:1\na.hip:3:7: error: no member\n   3 | x.y\n1 error generated.\n",
            "a.hip:3:7: error: no member",
        ),
        (
            "ptxas x.ptx, line 9; error   : Unknown symbol\nptxas fatal   : aborted",
            "ptxas x.ptx, line 9; error   : Unknown symbol",
        ),
        ("a note\nLLVM ERROR: Cannot select: intrinsic\nStack dump:", "LLVM ERROR: Cannot select: intrinsic"),
        (f"M=4: {TRACED}ValueError: fp8e4nv not supported", "ValueError: fp8e4nv not supported"),
        (f"{TRACED}PTXASError: PTXAS error: no such\nRepro command: ptxas a.ptx", "PTXASError: PTXAS error: no such"),
    ],
)
def test_the_telling_line(text: str, line: str) -> None:
    assert first_error_line(text) == line


@pytest.mark.parametrize("characters", [LINE_CHARACTERS, 400])
def test_a_long_line_is_cut(characters: int) -> None:
    cut = first_error_line("x" * 5000, characters)
    assert len(cut) == characters and cut.endswith("x…")
    assert first_error_line("x" * characters, characters) == "x" * characters
