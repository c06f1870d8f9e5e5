"""Edits as unified diffs, from what a program says of the files that it read and wrote."""

from __future__ import annotations

from difflib import unified_diff

CONTEXT_LINES = 3


def unified(path: str, before: str | None, after: str) -> str:
    """How a file changes, as `diff -u` prints it, empty where nothing does; `before` is None where the file is new."""
    old = [] if before is None else _lines(before)
    origin = "/dev/null" if before is None else f"a/{path.lstrip('/')}"
    changed = unified_diff(old, _lines(after), origin, f"b/{path.lstrip('/')}", n=CONTEXT_LINES)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changed)


def replaced(before: str, old: str, new: str, everywhere: bool = False) -> str:
    """`before` with the first (or each) `old` replaced by `new`."""
    return before.replace(old, new) if everywhere else before.replace(old, new, 1)


def _lines(text: str) -> list[str]:
    """Lines with their line feeds; only line feeds end a line, as for diff."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
