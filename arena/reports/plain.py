"""Text that a program printed, as a person may safely see it: no control codes, nothing reordered, cut where long."""

from __future__ import annotations

import json
import re
from html import escape
from typing import NamedTuple

from arena.processes.printable import printable

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)"  # OSC and its kin: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]"  # the other escape sequences, and beginnings without an end, which must hide nothing
)


class Cut(NamedTuple):
    """A text as it is shown: its beginning, how many characters are left out, its end."""

    head: str
    left_out: int
    tail: str


def plain(text: str) -> str:
    r"""Text without escape sequences; other control characters become U+FFFD, line ends `\n`."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(_last_written(line) for line in text.split("\n"))
    return printable(text)


def markdown_line(text: str) -> str:
    """Return text on one line of Markdown in which it is neither HTML nor a link nor a picture."""
    line = escape(" ".join(plain(text).split()), quote=False)
    return line.replace("](", "]\\(").replace("][", "]\\[").replace("]:", "]\\:")


def cut(text: str, limit: int) -> Cut:
    """Two thirds of `limit` from the beginning and a third from the end; all of it where it is not longer."""
    if len(text) <= limit:
        return Cut(text, 0, "")
    tail = limit // 3
    head = limit - tail
    return Cut(text[:head], len(text) - head - tail, text[len(text) - tail :])


def first_line(text: str, limit: int = 110) -> str:
    """The first line that says something, cut to fit."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def arguments(text: str) -> str:
    """The arguments of a tool call for reading: a JSON object as `name: value`, one below the other; else the text."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return text
    if not isinstance(found, dict):
        return text
    return "\n".join(_argument(str(name), value) for name, value in found.items())


def _last_written(line: str) -> str:
    """What is seen of a line whose beginning was written over after carriage returns, as by a progress bar."""
    return line.rstrip("\r").rpartition("\r")[2]


def _argument(name: str, value: object) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name}:\n{shown}" if "\n" in shown else f"{name}: {shown}"
