"""Say that a HIP kernel's entry has another signature than the task declares, in place of what a compiler prints."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice

from arena.platforms.toolchains.hip_scan import TooLong, limited, mask, match_forward, without_comments
from arena.platforms.toolchains.task_header import prototype
from arena.task.definition import Task

_CONFLICT = re.compile(
    r"conflicting declaration of C function|conflicting types for|more than one instance of overloaded function"
    r"|functions that differ only in their return type|ambiguating new declaration"
)
_MOST_CHARACTERS, _MOST_MENTIONS = 600, 64
_READING_S = 2.0


def wrong_signature(task: Task, text: str, log: str, name: str) -> str:
    """Return the expected and the found signature in two lines, where a compiler says that they conflict.

    Args:
        task: declares the entry.
        text: the candidate's source.
        log: what the compiler printed.
        name: of the candidate's file.
    """
    if not any(task.entry in line and _CONFLICT.search(line) for line in log.splitlines()):
        return ""
    with suppress(TooLong), limited(_READING_S):
        return _compared(task, text, mask(text), name)
    return ""


def _compared(task: Task, text: str, masked: str, name: str) -> str:
    for found in islice(re.finditer(rf"\b{re.escape(task.entry)}\s*(?=\()", masked), _MOST_MENTIONS):
        end = match_forward(masked, found.end(), len(masked))
        if end is None or not masked[end + 1 : end + 1 + _MOST_CHARACTERS].lstrip().startswith("{"):
            continue
        begin = max(masked.rfind(char, 0, found.start()) for char in ";{}") + 1
        begin = max(
            [begin, *(line.end() for line in re.finditer(r"^[ \t]*#.*$", masked[: found.start()], re.MULTILINE))]
        )
        line = text.count("\n", 0, found.start()) + 1
        head = _shown(text[begin : end + 1])
        expected = prototype(task, workspace=re.search(r"\bARENA_WORKSPACE\b", masked) is not None)
        return f"expected {expected.removesuffix(';')}\nfound    {head}, {name}:{line}"
    return ""


def _shown(text: str) -> str:
    return " ".join(without_comments(text).split())[:_MOST_CHARACTERS]
