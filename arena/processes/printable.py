"""Untrusted text made fit for a terminal, a page and a record: without control codes, and of bounded length."""

from __future__ import annotations

from pathlib import Path

_KEPT = "\t\n"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CODES = (*range(0x20), *range(0x7F, 0xA0))
"""C0, DEL and C1: among them what begins the escape sequences of terminals"""
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""what reverses the text around it, and separators that end a line for some readers only"""
_SURROGATES = range(0xD800, 0xE000)
_TABLE = dict.fromkeys((*_CODES, *_DIRECTIONS, *_SURROGATES, 0xFEFF, 0xFFFE, 0xFFFF), _REPLACEMENT)
for _character in _KEPT:
    del _TABLE[ord(_character)]


def printable(text: str) -> str:
    """Return the text with every control code replaced by U+FFFD; tabs and line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_TABLE)


def write_printable(path: Path, text: str) -> Path:
    """Write printable text into a file, whose folder is made where there is none, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(printable(text), encoding="utf-8")
    return path


def shortened(text: str, characters: int) -> str:
    """Return printable text of at most `characters`: from a longer one the middle is left out, and says so."""
    text = printable(text[: 2 * characters] + text[-2 * characters :] if len(text) > 4 * characters else text)
    if len(text) <= characters:
        return text
    note = "\n[characters left out here]\n"
    if characters < 4 * len(note):
        return text[: characters - 1] + "…"
    last = (characters - len(note)) // 2
    return text[: characters - len(note) - last] + note + text[-last:]
