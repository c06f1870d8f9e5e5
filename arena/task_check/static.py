"""What can be seen of a task without running anything, and of two tasks side by side."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from arena.corpus.scaffolding import unfinished
from arena.judge.messages import CPU_MAX_WORK
from arena.judge.selection import emulation_work
from arena.model.check import CheckItem, CheckOutcome
from arena.model.record import Split
from arena.model.task import ScalarSpec, Task, TensorSpec, arguments

LEAST_KINDS = 4
LEAST_TIMED, MOST_TIMED = 2, 5
_LEAST_SMALL = 2


def static_items(task: Task, duplicates: Mapping[str, str]) -> Iterator[CheckItem]:
    """The items; `duplicates` names, by task id, a task that is the same but for the name."""
    yield CheckItem("schema", CheckOutcome.PASSED, f"{len(task.seen)} seen and {len(task.heldout)} held-out cases")
    left = unfinished(task.path)
    yield _item(task, "finished", f"{len(left)} lines say TODO: {left[0]}" if left else "")
    yield _item(task, "kinds", _few_kinds(task))
    yield _item(task, "timed cases", _timed(task))
    yield _item(task, "axes vary", _pinned(task))
    yield _item(task, "small cases", _too_few_small(task))
    duplicate = duplicates.get(task.id)
    yield _item(task, "unlike others", f"is {duplicate} under another name" if duplicate else "")


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
    """What two tasks of a type must not share: the definition with its reference, and the baseline kernel."""
    shapes = [_tensor(spec) if isinstance(spec, TensorSpec) else (spec.dtype, spec.value) for spec in task.inputs]
    outputs = [_tensor(spec) for spec in task.outputs]
    yield task.task_type, "definition", repr((shapes, outputs)), _code(task.reference_path.read_text(encoding="utf-8"))
    kernel = task.baseline_kernel
    if kernel is not None:
        text = kernel.read_text(encoding="utf-8")
        yield task.task_type, "kernel", _code(text) if kernel.suffix == ".py" else _words(text, task.entry)


def _item(task: Task, name: str, problem: str) -> CheckItem:
    if not problem:
        return CheckItem(name, CheckOutcome.PASSED)
    if name in task.exceptions:
        return CheckItem(name, CheckOutcome.DECLARED, task.exceptions[name])
    return CheckItem(name, CheckOutcome.FAILED, problem)


def _few_kinds(task: Task) -> str:
    kinds = Counter(case.kind for case in task.heldout)
    if len(kinds) >= LEAST_KINDS:
        return ""
    return f"held-out cases are of {len(kinds)} kinds ({', '.join(sorted(kinds))}), at least {LEAST_KINDS} are needed"


def _timed(task: Task) -> str:
    """Speed is measured on two to five cases of each split; more only cost time."""
    for split, cases in ((Split.SEEN, task.seen), (Split.HELDOUT, task.heldout)):
        timed = sum(case.timed for case in cases)
        if not LEAST_TIMED <= timed <= MOST_TIMED:
            return f"{timed} {split} cases say `timed: true`; expected {LEAST_TIMED} to {MOST_TIMED}, production sizes"
    return ""


def _pinned(task: Task) -> str:
    """An axis that never changes is a constant of the task, whatever its domain says."""
    for axis in task.axes:
        taken = {case.values[axis.name] for case in task.cases}
        if len(taken) == 1 and axis.low != axis.high:
            return f"axis {axis.name} is {taken.pop()} in every case, though its domain is {axis.domain_text}"
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec) and all(
            case.values.get(spec.name, spec.value) == spec.value for case in task.cases
        ):
            return f"scalar {spec.name} is {spec.value} in every case: a kernel could take it for a constant"
    return ""


def _too_few_small(task: Task) -> str:
    for split, cases in ((Split.SEEN, task.seen), (Split.HELDOUT, task.heldout)):
        small = sum(emulation_work(arguments(task, case)) <= CPU_MAX_WORK for case in cases)
        if small < _LEAST_SMALL:
            return f"{small} {split} cases are small enough for the CPU: {CPU_MAX_WORK:.0e} operations plus bytes held"
    return ""


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
