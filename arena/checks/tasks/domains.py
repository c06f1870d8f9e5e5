"""Check that cases draw the numbers that a task's inputs may hold: both signs, and magnitudes of some hundreds.

No kernel is built. What no case holds may be computed in any way: a kernel that takes a scale for positive, or whose
intermediate numbers overflow, passes. `domain:` of an input says where its range ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.checks.tasks.rules import rule_item
from arena.checks.tasks.soundness import Draw
from arena.judge.selection import emulation_work
from arena.results.check import CheckItem
from arena.results.messages import message
from arena.task.definition import Arguments, InputSpec, ScalarSpec, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.options import CPU_MAX_WORK
from arena.task.rules import DOMAIN_OF, DOMAIN_REACH, RuleLevel

if TYPE_CHECKING:
    import torch

_DRAWS = 3
"""as many as an evaluation has"""
_LEAST_SCALAR = 1e-30


@dataclass(frozen=True)
class Span:
    """The least and the greatest number of some draws, and 0."""

    low: float = 0.0
    high: float = 0.0

    def __or__(self, other: Span) -> Span:
        """Return what both reach together."""
        return Span(min(self.low, other.low), max(self.high, other.high))

    def covers(self, wanted: Span) -> bool:
        """Return whether it reaches as far on both sides."""
        return self.low <= wanted.low and self.high >= wanted.high


def domain_items(task: Task, reference: Reference, level: RuleLevel, generator: torch.Generator) -> Iterator[CheckItem]:
    """Yield an item `domain of INPUT` for each floating-point input, by what cases that the CPU platform runs hold."""
    found = find_reach(task, reference, generator)
    for spec in task.inputs:
        if spec.name in found:
            reached, wanted = found[spec.name], wanted_reach(spec)
            seen = f"from {reached.low:.3g} to {reached.high:.3g}"
            problem = ""
            if not reached.covers(wanted):
                wanting = f"{wanted.low:.3g} or less" if reached.low > wanted.low else f"{wanted.high:.3g} or more"
                problem = message("check_domain_reach", name=spec.name, reached=seen, wanted=wanting)
            yield rule_item(task, level, f"{DOMAIN_OF}{spec.name}", problem, seen)


def wanted_reach(spec: InputSpec) -> Span:
    """Return how far draws of an input must reach: half of its range, but no further than `DOMAIN_REACH`.

    A scalar must have both signs where its range has.
    """
    low, high = spec.domain
    most = _LEAST_SCALAR if isinstance(spec, ScalarSpec) else DOMAIN_REACH
    return Span(-min(most, max(-low, 0.0) / 2), min(most, max(high, 0.0) / 2))


def find_reach(task: Task, reference: Reference, generator: torch.Generator) -> dict[str, Span]:
    """Return how far each floating-point input reaches in the cases that the CPU platform runs."""
    cases = [case for case in task.cases if emulation_work(arguments(task, case)) <= CPU_MAX_WORK]
    found = {}
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec) and spec.dtype == "float32":
            set_to = [float(case.values.get(spec.name, spec.value)) for case in cases]
            found[spec.name] = Span(min(0.0, *set_to), max(0.0, *set_to))
    for case in cases:
        for name, reached in _of_case(reference, arguments(task, case), generator).items():
            found[name] = found.get(name, Span()) | reached
    return found


def _of_case(reference: Reference, worked_out: Arguments, generator: torch.Generator) -> dict[str, Span]:
    """Return what the draws of one case reach together."""
    first, *others = (_of_draw(Draw.of(reference, worked_out, generator)) for _ in range(_DRAWS))
    for other in others:
        first = {name: reached | other[name] for name, reached in first.items()}
    return first


def _of_draw(draw: Draw) -> dict[str, Span]:
    """Return the least and the greatest finite number of each floating-point input."""
    reached = {}
    for name, values in draw.inputs.items():
        if values.is_floating_point() and values.itemsize > 1:
            numbers = values.double()
            finite = numbers[numbers.isfinite()]
            reached[name] = Span(*(float(end) for end in finite.aminmax())) if finite.numel() else Span()
    return reached
