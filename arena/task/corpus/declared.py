"""Refuse what a definition says in vain: exceptions from no rule, and keys that nothing would heed."""

from __future__ import annotations

from arena.task.corpus.strict_yaml import Document
from arena.task.definition import Precision, Task
from arena.task.rules import exception_problem


def check_declared(document: Document, task: Task) -> None:
    """Raise `FileError` for an exception that names no rule, or a key that has no effect on this task."""
    _check_exceptions(document, task)
    data = document.data
    if "arithmetic" in data and task.precision is not Precision.FLOAT64:
        said = f"has no effect with `precision: {task.precision}`: only references in float64 have a tolerance by it"
        raise document.error(["arithmetic"], said)
    if "least_triton" in data and not task.task_type.triton:
        raise document.error(["least_triton"], f"has no effect on a task of the type {task.task_type}")


def _check_exceptions(document: Document, task: Task) -> None:
    import difflib

    results = [spec.name for spec in task.tensors if spec.mutable or spec in task.outputs]
    inputs = [spec.name for spec in task.inputs]
    for name in task.exceptions:
        found = exception_problem(name, [axis.name for axis in task.axes], results, inputs)
        if found is not None:
            problem, known = found
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise document.error(["exceptions", name], f"{problem}{hint}")
