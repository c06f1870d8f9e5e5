"""Fresh held-out cases, drawn from a task's declared domain: so that a private evaluation can renew them.

Each kind of case has its own way of drawing sizes; what the task's constraints refuse is drawn again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from arena.errors import UsageError
from arena.results.record import Split
from arena.task.definition import LARGE, Axis, Case, ScalarSpec, Task, arguments
from arena.task.expression import ExpressionError

_TRIES = 2000
KINDS = ("edge", "scale_up", "scale_down", "alignment", "asymmetric", "dtype")
Sizes = dict[str, int]


def sample_cases(task: Task, count: int, seed: int, max_work: float | None = None) -> tuple[Case, ...]:
    """`count` distinct cases inside the domain, none equal to a seen or committed one, kinds taken in turn.

    Cases above `max_work` (operations plus bytes held) are drawn again, as are those whose tensors would not fit in
    the largest case the task already has. Raises `UsageError` where the domain has too few.
    """
    generator = random.Random(f"{seed}/{task.id}")
    taken = {task.identity(case) for case in task.cases}
    roof = max(arguments(task, case).num_bytes for case in task.cases if case.kind != LARGE)
    found: list[Case] = []
    for attempt in range(_TRIES * count):
        if len(found) == count:
            break
        kind = KINDS[len(found) % len(KINDS)] if attempt % 50 else generator.choice(KINDS)
        values = _draw(task, kind, generator)
        position = len(found)
        name, note = f"{Split.HELDOUT}-{position + 1:02d}", f"sampled, seed {seed}"
        case = Case(name, Split.HELDOUT, kind, values, note=note, position=position)
        if task.identity(case) not in taken and _fits(task, case, max_work, roof):
            taken.add(task.identity(case))
            found.append(case)
    if len(found) < count:
        raise UsageError(f"{task.id}: only {len(found)} of {count} fresh cases found; the domain may be too small")
    return _timed(task, found)


def _timed(task: Task, cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases; those that move as much as a timed case of the task are timed, the largest first.

    There are as many of them as the task has timed held-out cases, or fewer.
    """
    declared = [case for case in task.cases if case.timed]
    least = min((arguments(task, case).num_bytes for case in declared), default=math.inf)
    by_size = sorted(cases, key=lambda case: arguments(task, case).num_bytes, reverse=True)
    large = [case.id for case in by_size if arguments(task, case).num_bytes >= least]
    chosen = large[: sum(case.timed and not case.regime for case in task.heldout)]
    return tuple(replace(case, timed=case.id in chosen) for case in cases)


def to_yaml(cases: tuple[Case, ...]) -> str:
    """The text of a held-out file."""
    items: list[dict[str, Any]] = [
        {"kind": case.kind, **case.values, "note": case.note, **({"timed": True} if case.timed else {})}
        for case in cases
    ]
    return "".join("- " + yaml.safe_dump(item, default_flow_style=True, sort_keys=False, width=1000) for item in items)


def _draw(task: Task, kind: str, generator: random.Random) -> dict[str, Any]:
    seen = {axis.name: [int(case.values[axis.name]) for case in task.seen] for axis in task.axes}
    sizes = _DRAWS[kind](task, seen, generator)
    values: dict[str, Any] = {axis.name: _admitted(axis, sizes[axis.name]) for axis in task.axes}
    for name, choices in task.dtypes.items():
        values[name] = generator.choice(choices)
    for spec in task.inputs:
        settings = [case.values[spec.name] for case in task.cases if spec.name in case.values]
        if isinstance(spec, ScalarSpec) and settings:
            values[spec.name] = generator.choice([spec.value, *settings])
    return values


def _edge(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    """Some axes at the smallest size the domain has."""
    at_edge = {axis.name for axis in task.axes if generator.random() < 0.5}
    return {a.name: a.low if a.name in at_edge else generator.choice(seen[a.name]) for a in task.axes}


def _scale_up(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    return {a.name: _log_uniform(max(seen[a.name]), a.high, generator) for a in task.axes}


def _scale_down(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    return {a.name: _log_uniform(a.low, max(a.low, min(seen[a.name])), generator) for a in task.axes}


def _alignment(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    """Near a seen size, but one or three off: odd, and no multiple of any block."""
    return {a.name: max(a.low, generator.choice(seen[a.name]) + generator.choice((-3, -1, 1, 3))) for a in task.axes}


def _asymmetric(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    """One axis large, the others small."""
    large = generator.choice(task.axes).name
    return {
        a.name: _log_uniform(max(seen[a.name]), a.high, generator)
        if a.name == large
        else _log_uniform(a.low, max(a.low, min(seen[a.name])), generator)
        for a in task.axes
    }


def _any(task: Task, seen: Mapping[str, list[int]], generator: random.Random) -> Sizes:
    return {a.name: _log_uniform(a.low, a.high, generator) for a in task.axes}


_DRAWS: dict[str, Callable[[Task, Mapping[str, list[int]], random.Random], Sizes]] = {
    "edge": _edge,
    "scale_up": _scale_up,
    "scale_down": _scale_down,
    "alignment": _alignment,
    "asymmetric": _asymmetric,
    "dtype": _any,
}


def _log_uniform(low: int, high: int, generator: random.Random) -> int:
    if low >= high:
        return high if low > high else low
    return round(math.exp(generator.uniform(math.log(max(low, 1)), math.log(high))))


def _admitted(axis: Axis, size: int) -> int:
    """The nearest size that the axis admits."""
    if axis.values:
        return min(axis.values, key=lambda value: abs(value - size))
    multiple = axis.multiple_of
    size = min(max(size, axis.low), axis.high)
    return max(size // multiple, -(-axis.low // multiple)) * multiple


def _fits(task: Task, case: Case, max_work: float | None, roof: float) -> bool:
    try:
        worked_out = arguments(task, case)
        if not all(constraint.value(worked_out.names) for constraint in task.constraints):
            return False
        num_bytes = max(worked_out.num_bytes, worked_out.held_bytes)
        work = worked_out.flops + num_bytes
        return num_bytes <= roof and (max_work is None or work <= max_work)
    except ExpressionError:
        return False
