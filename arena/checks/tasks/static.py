"""Check what can be seen of a task without running anything, and of two tasks side by side."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from arena.checks.tasks.rules import rule_items
from arena.results.check import CheckItem, CheckOutcome
from arena.task.corpus.level import level_of
from arena.task.definition import Task, TensorSpec


def static_items(task: Task, duplicates: Mapping[str, str]) -> Iterator[CheckItem]:
    """The items; `duplicates` names, by task id, a task that is the same but for the name."""
    level = level_of(task)
    cases = f"{len(task.seen)} seen and {len(task.heldout)} held-out cases"
    yield CheckItem("schema", CheckOutcome.PASSED, f"{cases}; rules of level {level}")
    yield from rule_items(task, level, duplicates.get(task.id, ""))


def find_duplicates(tasks: Mapping[str, Task]) -> dict[str, str]:
    """For each task that is like an earlier one of its type in all but names: that one's id."""
    first: dict[object, str] = {}
    duplicates = {}
    for name, task in tasks.items():
        for print_ in fingerprints(task):
            other = first.setdefault(print_, name)
            if other != name:
                duplicates[name] = other
    return duplicates


def fingerprints(task: Task) -> Iterator[object]:
    """Return what two tasks of a type must not share: the definition with its reference, and the baseline kernel."""
    shapes = [_tensor(spec) if isinstance(spec, TensorSpec) else (spec.dtype, spec.value) for spec in task.inputs]
    outputs = [_tensor(spec) for spec in task.outputs]
    yield task.task_type, "definition", repr((shapes, outputs)), _code(task.reference_path.read_text(encoding="utf-8"))
    kernel = task.baseline_kernel
    if kernel is not None:
        text = kernel.read_text(encoding="utf-8")
        yield task.task_type, "kernel", _code(text) if kernel.suffix == ".py" else _words(text, task.entry)


def _tensor(spec: TensorSpec) -> tuple[object, ...]:
    return tuple(size.text for size in spec.shape), spec.dtype, spec.mutable, spec.optional, str(spec.fill)


def _code(text: str) -> str:
    """A Python file without names of functions, docstrings and comments; the text where it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text  # its own check says so
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name = "_"
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body.pop(0)
    return ast.dump(tree)


def _words(text: str, entry: str) -> str:
    """A HIP file without comments, spaces and the entry's name."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(rf"\b{re.escape(entry)}", "_", bare).split())
