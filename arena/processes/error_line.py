"""Find the line of a compiler's, Python's or the judge's text that says most. Used by reports and the command line."""

from __future__ import annotations

import re

from arena.results.messages import NEXT, code_of

LINE_CHARACTERS = 110
"""what fits a line of a report"""
_ERROR = re.compile(r"\b(?:error|fatal)\s*:", re.IGNORECASE)
"""How clang, nvcc, ptxas (`error   :`) and LLVM (`LLVM ERROR:`) begin a complaint; not `ValueError:`."""


def first_error_line(text: str, characters: int = LINE_CHARACTERS) -> str:
    """Return the first line in which a compiler complains, else of a traceback the last, else the first; cut to fit."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not (line.startswith(NEXT) and code_of(line))]
    if not lines:
        return ""
    traced = any("Traceback (most recent call last)" in line for line in lines)
    line = next((line for line in lines if _ERROR.search(line)), lines[-1] if traced else lines[0])
    return line if len(line) <= characters else line[: characters - 1] + "…"
