"""Shorten what compilers and Python print for the author of a kernel: its own lines, nothing of the harness."""

from __future__ import annotations

import re

from arena.package import PACKAGE

LINES = 80
CHARACTERS = 8000
_PACKAGE = str(PACKAGE)
_FRAME = re.compile(r'^  File "(?P<path>[^"]+)", line \d+, in .*\n(?:    .*\n)*', re.MULTILINE)
_INSTALLED = re.compile(r"/\S*/(?:site|dist)-packages/")
_SCRATCH = re.compile(r"/\S*/arena-[a-z]+-\d+-\d+-\w+/(?:tmp\w+/)?")


def cleaned(text: str) -> str:
    """A log with short paths; of a traceback's frames the candidate's in full, the libraries' in a line, no others."""
    return _SCRATCH.sub("", _INSTALLED.sub("", _FRAME.sub(_frame, text)))


def shortened(text: str, lines: int = LINES, characters: int = CHARACTERS) -> str:
    """A log with its middle cut out where it is long: compilers name the cause first, Python last."""
    rows = text.strip("\n").splitlines()
    if len(rows) > lines:
        left_out = f"… {len(rows) - lines} lines left out …"
        rows = [*rows[: lines // 2], left_out, *rows[len(rows) - (lines - lines // 2) :]]
    kept = "\n".join(rows)
    if len(kept) <= characters:
        return kept
    half = characters // 2
    return f"{kept[:half]}\n… {len(kept) - 2 * half} characters left out …\n{kept[-half:]}"


def _frame(frame: re.Match[str]) -> str:
    path = frame["path"]
    if path.startswith((f"{_PACKAGE}/", "<frozen ")):
        return ""
    return frame[0].split("\n", 1)[0] + "\n" if _INSTALLED.match(path) else frame[0]
