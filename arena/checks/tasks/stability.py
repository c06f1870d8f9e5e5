"""Check that a task's values reject unstable forms: the same formulas, but overflowing or cancelling in float32.

No kernel is built. The reference computes one operation in its unstable form, in float32
(`arena/task/numerics/unstable_forms.py`); the judge must reject that in some case that the CPU platform can run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.checks.tasks.rules import rule_item
from arena.checks.tasks.soundness import Draw
from arena.judge.correctness.verify import check_outputs
from arena.judge.selection import cpu_cases, emulation_work
from arena.results.check import CheckItem
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.rules import UNSTABLE, RuleLevel, reason_for

if TYPE_CHECKING:
    import torch

    from arena.task.numerics.unstable_forms import UnstableForm

LEAST_ERROR = 10.0
"""times the tolerance: what is wrong by less may be right on another GPU, with another order of sums"""
_LEAST_OF = {"accumulate": 1.2}
"""where the form differs by rounding alone, which many terms make certain"""
_SMALL_WORK = 3e5
_DRAWS = 3
"""as many as an evaluation has; a case counts if all of them are wrong, so that no single spike decides"""


@dataclass(frozen=True)
class FormReach:
    """The error of an operation's unstable form over the tolerance: of the mildest draw, in the case `where`."""

    form: str
    where: str = ""
    error: float = 0.0

    @property
    def rejected(self) -> bool:
        """Return whether a case rejects the form."""
        return self.error >= least_error(self.form)


def least_error(form: str) -> float:
    """Return how many times the tolerance a form must be wrong by."""
    return _LEAST_OF.get(form, LEAST_ERROR)


def stability_items(
    task: Task, reference: Reference, level: RuleLevel, generator: torch.Generator
) -> Iterator[CheckItem]:
    """Yield an item `unstable FORM` for each form that some operation of the reference has."""
    from arena.task.numerics.unstable_forms import WORDS

    found = find_reach(task, reference, generator)
    for form in sorted({operation.form for operation in found}):
        lines = {operation.line: reach for operation, reach in found.items() if operation.form == form}
        missed = {line: reach for line, reach in lines.items() if not reach.rejected}
        problem = ""
        if missed:
            reached = "; ".join(f"line {line}: {_figure(reach)}" for line, reach in missed.items())
            problem = message("check_unstable_form", words=WORDS[form], reached=reached, least=least_error(form))
        seen = "; ".join(f"line {line}: {_figure(reach)}" for line, reach in lines.items())
        yield rule_item(task, level, f"{UNSTABLE}{form}", problem, f"wrong by {seen} times the tolerance")


def find_reach(task: Task, reference: Reference, generator: torch.Generator) -> dict[UnstableForm, FormReach]:
    """Return the operations that have an unstable form, each with how wrong that is in the case that shows it best.

    Cases with fills of their own come first, and no case is tried for an operation that an earlier one rejects.
    """
    found: dict[UnstableForm, FormReach] = {}
    small, larger = _cases(task)
    for case in [*small, *larger]:
        if case in larger and not any(_is_wanted(task, *item) for item in found.items()):
            break
        draws = [Draw.of(reference, arguments(task, case), generator)]
        for operation in reference.unstable_forms(draws[0].arguments, draws[0].inputs):
            reach = found.setdefault(operation, FormReach(operation.form))
            if reach.rejected or (case in larger and not _is_wanted(task, operation, reach)):
                continue
            least = _least_error(draws, operation, generator)
            if not reach.where or least > reach.error:
                found[operation] = FormReach(operation.form, case.id, least)
    return found


def _is_wanted(task: Task, operation: UnstableForm, reach: FormReach) -> bool:
    """Return whether larger cases are tried: where no small one rejects the form, and no reason is given."""
    return not reach.rejected and not reason_for(task.exceptions, f"{UNSTABLE}{operation.form}")


def _cases(task: Task) -> tuple[list[Case], list[Case]]:
    """Return the small cases, and larger ones that the CPU platform can run; those with fills of their own first."""
    ordered = sorted(cpu_cases(task), key=lambda case: not case.fills)
    small = [case for case in ordered if case.fills or emulation_work(arguments(task, case)) <= _SMALL_WORK]
    small = small or ordered[:1]
    return small, [case for case in ordered if case not in small]


def _least_error(draws: list[Draw], operation: UnstableForm, generator: torch.Generator) -> float:
    """Return the error of the mildest draw, and no further one once it passes; adds to `draws` those that it makes."""
    least = math.inf
    for number in range(_DRAWS):
        if number == len(draws):
            draws.append(Draw.of(draws[0].reference, draws[0].arguments, generator))
        least = min(least, unstable_error(draws[number], operation))
        if least < least_error(operation.form):
            break
    return least


def unstable_error(draw: Draw, operation: UnstableForm) -> float:
    """Return the worst error over tolerance of any output where one operation has its unstable form.

    Infinite where an output is not finite and should be, and where the reference cannot go on.
    """
    try:
        results = draw.reference.in_unstable_form(draw.arguments, draw.inputs, operation)
    except Exception:  # what is not finite may be no index, whatever the reference then raises
        return math.inf
    worst = 0.0
    for name, right in draw.answers.items():
        answers = {**draw.answers, name: results[name].to(right.dtype)}
        checked = check_outputs(draw.arguments, draw.reference, draw.inputs, answers, draw.expected)
        wrong = math.inf if checked.status is not Status.PASSED else 0.0
        worst = max(worst, wrong if checked.error_ratio is None else checked.error_ratio)
    return worst


def _figure(reach: FormReach) -> str:
    return f"{reach.error:.2g} in {reach.where}"
