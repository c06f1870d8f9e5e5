"""Cases that an author makes up from a seen case of a task, for `arena evaluate --like`; no task has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arena.errors import UsageError
from arena.task.corpus.case_checks import CaseProblem, checked_case
from arena.task.definition import Case, ScalarSpec, Task, arguments

PREFIX = "like-"
"""of the id of a case that is made up, before the id of the seen case"""
_TRUTH = {"true": True, "false": False}


def like_case(task: Task, text: str, named: Sequence[str] = ()) -> Case:
    """Return a seen case with other axes, dtypes or scalars: of the task's domain, and none of its cases.

    Args:
        task: The task, with all of its cases.
        text: Such as `M=4097 dtype=bfloat16`; a dtype may stand alone, as in the label of a case.
        named: The id of the seen case to change; empty: the smallest for which the result is in the domain.

    Raises:
        UsageError: An unknown name, a value outside its domain, a broken constraint, or a case of the task.
    """
    changes = _changes(task, text)
    problems = []
    for base in _bases(task, named):
        made = replace(
            base,
            id=f"{PREFIX}{base.id}",
            values={**base.values, **changes},
            implied=base.implied - changes.keys(),
            note="",
            timed=True,
            calls=0,
            gpu_share=0.0,
            regime="",
        )
        try:
            checked_case(task, made)
        except CaseProblem as problem:
            problems.append(f"like {text!r}, from {base.id} ({base.label}): {problem}")
            continue
        _require_new(task, made, text)
        return made
    raise UsageError(problems[0])


def _bases(task: Task, named: Sequence[str]) -> list[Case]:
    """Return the seen cases to change: the one that is named, or all, the smallest first."""
    if not named:
        return sorted(task.seen, key=lambda case: arguments(task, case).num_bytes)
    seen = [case.id for case in task.seen]
    if len(named) > 1 or named[0] not in seen:
        raise UsageError(f"like changes one seen case, not {', '.join(named)}; expected one of: {', '.join(seen)}")
    return [task.seen[seen.index(named[0])]]


def _require_new(task: Task, made: Case, text: str) -> None:
    same = next((case for case in task.cases if task.identity(case) == task.identity(made)), None)
    if same is not None:
        raise UsageError(f"like {text!r}: that is {same.id} of {task.id}; judge it with `case` instead")


def _changes(task: Task, text: str) -> dict[str, int | float | bool | str]:
    axes = {axis.name: axis for axis in task.axes}
    scalars = {spec.name: spec.dtype for spec in task.inputs if isinstance(spec, ScalarSpec)}
    found: dict[str, int | float | bool | str] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals:
            name, value = _variable(task, part), part
        if name in axes:
            size = _number(value)
            if not isinstance(size, int) or not axes[name].admits(size):
                raise UsageError(f"like: {name}={value} is outside the domain of {name}: {axes[name].domain_text}")
            found[name] = size
        elif name in task.dtypes:
            if value not in task.dtypes[name]:
                raise UsageError(f"like: {name}={value} is no dtype of {name}: one of {', '.join(task.dtypes[name])}")
            found[name] = value
        elif name in scalars:
            found[name] = _scalar(name, scalars[name], value)
        else:
            raise UsageError(f"like: {task.id} has no `{name}`; expected {_known(axes, task.dtypes, scalars)}")
    if not found:
        raise UsageError(f"like: nothing is changed; expected {_known(axes, task.dtypes, scalars)}, as NAME=VALUE")
    return found


def _variable(task: Task, dtype: str) -> str:
    """Return the variable that a dtype without a name is for; the word itself where none or several are."""
    found = [name for name, choices in task.dtypes.items() if dtype in choices]
    return found[0] if len(found) == 1 else dtype


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _scalar(name: str, dtype: str, text: str) -> int | float | bool:
    value = _TRUTH.get(text.lower()) if dtype == "bool" else _number(text)
    if value is None or (isinstance(value, float) and dtype != "float32"):
        raise UsageError(f"like: {name}={text} is not a {dtype}")
    return value


def _known(*names: Mapping[str, object]) -> str:
    return "one of: " + ", ".join(name for part in names for name in part)
