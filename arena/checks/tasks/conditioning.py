"""Check that rounding alone does not decide what is right: a kernel that rounds otherwise than the judge must pass.

Of large numbers before a softmax or a sigmoid, the sign of a small difference decides, and either sign is right. No
kernel is built: the reference is computed in the allowed arithmetic, with operands that are moved before rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.checks.tasks.arithmetic import error_over_tolerance
from arena.checks.tasks.domains import holds_usual_numbers
from arena.checks.tasks.soundness import Draw, unless_declared
from arena.judge.selection import cpu_cases
from arena.results.check import CheckItem, CheckOutcome
from arena.results.messages import message
from arena.task.definition import Case, Precision, Task, arguments
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

NAME = "well conditioned"
MOST_ERROR = 10.0
"""times the tolerance: where nothing is amiss some rare sums are off by 5 times, as these moves are large"""
_DRAWS = 16
_WAYS = 2


def conditioning_item(task: Task, reference: Reference, generator: torch.Generator) -> CheckItem | None:
    """Return whether other roundings pass in every case of unusual numbers that the CPU platform runs.

    None where there is no such case.
    """
    if task.precision is not Precision.FLOAT64:
        return None
    worst, where = 0.0, None
    for case in cpu_cases(task):
        first = Draw.of(reference, arguments(task, case), generator)
        if not holds_usual_numbers(first):
            found = _worst_error(first, generator)
            worst, where = max((worst, where), (found, case), key=lambda pair: pair[0])
    if where is None:
        return None
    return unless_declared(task, _item(worst, where))


def _item(worst: float, where: Case) -> CheckItem:
    if worst <= MOST_ERROR:
        return CheckItem(NAME, CheckOutcome.PASSED, f"other roundings are off by up to {worst:.2g} times the tolerance")
    detail = message("check_ill_conditioned", case=where.label, error=worst, most=MOST_ERROR)
    return CheckItem(NAME, CheckOutcome.FAILED, detail)


def _worst_error(first: Draw, generator: torch.Generator) -> float:
    """Return the greatest error over the tolerance in some draws, each rounded in some ways."""
    draws = [first, *(Draw.of(first.reference, first.arguments, generator) for _ in range(_DRAWS - 1))]
    return max(_error(draw, number * _WAYS + way) for number, draw in enumerate(draws) for way in range(_WAYS))


def _error(draw: Draw, seed: int) -> float:
    number_format = draw.arguments.operand_format
    found = draw.reference.in_arithmetic(draw.arguments, draw.inputs, number_format, dither=seed)
    return error_over_tolerance(draw, found)
