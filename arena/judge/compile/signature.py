"""Compare the signature of a candidate's entry with the one that the task declares."""

from __future__ import annotations

import ast
import re
import warnings
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from arena.platforms.toolchains.hip_scan import TooLong, limited, mask, match_forward, without_comments
from arena.platforms.toolchains.task_header import prototype
from arena.task.definition import Task

_CONFLICT = re.compile(
    r"conflicting declaration of C function|conflicting types for|more than one instance of overloaded function"
    r"|functions that differ only in their return type|ambiguating new declaration"
)
_PARAMETER = re.compile(r"(\w+)\s*(?:\[\s*\]\s*)?(?=[,)])")
_MOST_CHARACTERS, _MOST_MENTIONS = 600, 64
_READING_S = 2.0
_OTHER_NAMES = "parameters have other names or another order than the task's; arguments are passed by position"


class _Signatures(NamedTuple):
    """The declared and the found signature of an entry, and the line of the latter."""

    expected: str
    found: str
    line: int


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


def other_names(task: Task, text: str, name: str) -> str:
    """Return a warning with both signatures where parameters have other names or another order than the task's.

    Args:
        task: declares the entry.
        text: the candidate's source, which has passed the rules.
        name: of the candidate's file.

    Returns:
        Lines as a compiler writes a warning. Empty where all names agree, or where no entry is found.
    """
    with suppress(TooLong), limited(_READING_S):
        both = _triton_signatures(task, text) if task.task_type.triton else _hip_signatures(task, text)
        if both is not None and _PARAMETER.findall(both.expected) != _PARAMETER.findall(both.found):
            return f"{name}:{both.line}: warning: {_OTHER_NAMES}\nexpected {both.expected}\nfound    {both.found}"
    return ""


def _triton_signatures(task: Task, text: str) -> _Signatures | None:
    """Return both signatures of a Triton candidate's entry; None where the module defines no such function."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name == task.entry:
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            wanted = [spec.name for spec in (*task.inputs, *task.outputs)]
            found = f"def {task.entry}({', '.join(names)})"[:_MOST_CHARACTERS]
            return _Signatures(f"def {task.entry}({', '.join(wanted)})", found, node.lineno)
    return None


def _compared(task: Task, text: str, masked: str, name: str) -> str:
    both = _hip_signatures(task, text, masked)
    return "" if both is None else f"expected {both.expected}\nfound    {both.found}, {name}:{both.line}"


def _hip_signatures(task: Task, text: str, masked: str = "") -> _Signatures | None:
    """Return both signatures of a HIP candidate's entry; None where the text defines no such function."""
    masked = masked or mask(text)
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
        return _Signatures(expected.removesuffix(";"), head, line)
    return None


def _shown(text: str) -> str:
    return " ".join(without_comments(text).split())[:_MOST_CHARACTERS]
