"""What an author of a kernel reads has no words for the harness's own machinery."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import arena
from arena.task.options import specs

PACKAGE = Path(arena.__file__).parent
ROOMS = ("worker", "cli", "api", "runs/service")
INTERNAL = re.compile(
    r"\btemplate (?:is|of workers|process)|worker template|fork.?server|Channel(?:Timeout|Closed)|\bdoubt|\bwalls\b"
    r"|\bdesk\b|\btwin\b|\bheadline\b|\bwire\b|\bframe\b|\bopcode\b|\bspawn",
    re.IGNORECASE,
)
TOLD = ("print", "echo", "Option", "Argument", "update")


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts that are raised or printed."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        if isinstance(node, ast.Raise) or name in TOLD:
            for part in ast.walk(call):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


@pytest.mark.parametrize("room", ROOMS)
def test_messages_have_no_internal_words(room: str) -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, text in messages(ast.parse(path.read_text(encoding="utf-8")))
        if INTERNAL.search(text)
    ]
    assert found == []


def test_nor_has_what_is_said_of_options() -> None:
    assert [name for name, spec in specs().items() if INTERNAL.search(spec.text)] == []
