"""Tensors that the domain of a task lets span more than 2³¹ elements, and those that are so large in a case.

A kernel with offsets of 32 bits is right on all others. The CPU platform runs the ends of such a launch for Triton.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from arena.task.definition import LARGE_ELEMENTS, MOST_HELD_BYTES, Arguments, Axis, Case, Task, TensorSpec, arguments
from arena.task.expression import ExpressionError

_TRIES = 32
"""orders of the axes that are tried; of 44 tensors that 200 orders found, all were found within 30"""
_STARTS = 6
"""cases to begin from: those with the largest such tensor"""


def tensors_without_large_case(task: Task) -> Iterator[tuple[str, int]]:
    """Yield the tensors that some sizes of the domain make that large and no case does, and elements that one spans."""
    worked_out = [arguments(task, case) for case in task.cases]
    for spec in task.tensors:
        if spec.view_of is None and max(_span(one, spec.name) for one in worked_out) <= LARGE_ELEMENTS:
            most = most_elements(task, spec, worked_out)
            if most > LARGE_ELEMENTS:
                yield spec.name, most


def admits_large(task: Task) -> bool:
    """Return whether some sizes of the domain make a tensor that large."""
    worked_out = [arguments(task, case) for case in task.cases]
    return any(most_elements(task, spec, worked_out) > LARGE_ELEMENTS for spec in task.tensors)


def most_elements(task: Task, spec: TensorSpec, worked_out: Sequence[Arguments]) -> int:
    """Return how many elements a tensor was found to span, within the domain and what a case may hold.

    In many orders the axes of its shape are raised one after the other, and the others lowered or left. The search ends
    where the tensor is large enough; the same task is always searched in the same way.
    """
    shaped = frozenset().union(*(size.names for size in (*spec.shape, *spec.strides)))
    starts = [one.case for one in sorted(worked_out, key=lambda one: -_span(one, spec.name))[:_STARTS]]
    generator, best = random.Random(spec.name), 0
    for turn in range(_TRIES):
        start, axes = starts[turn % len(starts)], list(task.axes)
        generator.shuffle(axes)
        axes.sort(key=lambda axis: axis.name in shaped)  # a stable sort
        values, reached = dict(start.values), 0
        for axis in axes:
            ascending = _sizes(axis) if axis.name in shaped or turn % 2 else [int(values[axis.name])]
            for size in reversed(ascending) if axis.name in shaped else ascending:
                tried = _admitted(task, Case(start.id, start.split, start.kind, values | {axis.name: size}, start.omit))
                if tried is not None and _span(tried, spec.name) >= reached:
                    values[axis.name], reached = size, _span(tried, spec.name)
                    break
        best = max(best, reached)
        if best > LARGE_ELEMENTS:
            break
    return best


def _admitted(task: Task, case: Case) -> Arguments | None:
    """Return the sizes of a case if the task's constraints hold and its tensors are not too large."""
    try:
        found = arguments(task, case)
        holds = all(rule.value(found.names) for rule in task.constraints)
    except ExpressionError:
        return None
    return found if holds and found.held_bytes <= MOST_HELD_BYTES else None


def _span(worked_out: Arguments, name: str) -> int:
    tensor = worked_out.tensors[name]
    return 0 if tensor is None else tensor.offset + tensor.span


def _sizes(axis: Axis) -> list[int]:
    """Return the sizes to try, ascending: those that the axis lists, or halves of its greatest, and its least."""
    if axis.values:
        return sorted(axis.values)
    halves = (axis.high >> shift for shift in range(axis.high.bit_length()))
    return sorted(
        {size for size in (axis.low, *(half - half % axis.multiple_of for half in halves)) if axis.admits(size)}
    )
