"""Check that cases draw the numbers that a task's inputs may hold: both signs, 0, and magnitudes of some hundreds.

No kernel is built. What no case holds may be computed in any way: a kernel that takes a scale for positive, or whose
intermediate numbers overflow, passes, and one that holds bfloat16 as float16. `domain:` of an input says where it ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.checks.tasks.rules import rule_item
from arena.checks.tasks.soundness import Draw
from arena.judge.selection import cpu_cases
from arena.results.check import CheckItem
from arena.results.messages import message
from arena.task.definition import InputSpec, ScalarSpec, Task, TensorSpec, arguments
from arena.task.numerics.reference import Reference
from arena.task.rules import BFLOAT16_REACH, DOMAIN_OF, DOMAIN_REACH, RuleLevel

if TYPE_CHECKING:
    import torch

_DRAWS = 3
"""as many as an evaluation has"""
_LEAST_SCALAR = 1e-30
_ROUNDED = 1.0 + 2.0**-8
"""an end of the domain times this is as far as bfloat16 rounds it"""


@dataclass(frozen=True)
class Span:
    """The least and the greatest number of some draws; of none at first."""

    low: float = math.inf
    high: float = -math.inf
    zero: bool = False
    """whether a number is 0"""

    def __or__(self, other: Span) -> Span:
        """Return what both reach together."""
        return Span(min(self.low, other.low), max(self.high, other.high), self.zero or other.zero)

    def covers(self, wanted: Span) -> bool:
        """Return whether it reaches as far from 0 on both sides."""
        return min(self.low, 0.0) <= wanted.low and max(self.high, 0.0) >= wanted.high

    def __str__(self) -> str:
        """Return its ends in words."""
        return f"from {self.low:.3g} to {self.high:.3g}" if self.low <= self.high else "without a number"


def domain_items(task: Task, reference: Reference, level: RuleLevel, generator: torch.Generator) -> Iterator[CheckItem]:
    """Yield an item `domain of INPUT` for each floating-point input, by what cases that the CPU platform runs hold."""
    found = find_reach(task, reference, generator)
    for spec in task.inputs:
        if spec.name in found:
            problem, seen = "", ""
            low, high = spec.domain
            for where, reached, wanted in _compared(spec, found[spec.name]):
                words = f"{reached}{where}"
                seen = seen or words
                if not Span(min(low, 0.0) * _ROUNDED, max(high, 0.0) * _ROUNDED).covers(reached):
                    problem = message("check_domain_left", name=spec.name, reached=words, low=low, high=high)
                if not problem and not reached.covers(wanted):
                    low_enough = min(reached.low, 0.0) <= wanted.low
                    wanting = f"{wanted.high:.3g} or more" if low_enough else f"{wanted.low:.3g} or less"
                    problem = message("check_domain_reach", name=spec.name, reached=words, wanted=wanting)
                if not problem and not where and _may_be_zero(spec) and not reached.zero:
                    problem = message("check_domain_reach", name=spec.name, reached=words, wanted="exactly 0")
            yield rule_item(task, level, f"{DOMAIN_OF}{spec.name}", problem, seen)


def _may_be_zero(spec: InputSpec) -> bool:
    """Return whether 0 is an end of the domain of an input that is only read, such as a scale: kernels divide by it.

    A scalar of 0 is taken for one that is not given.
    """
    return 0.0 in spec.domain and not (isinstance(spec, TensorSpec) and spec.mutable)


def _compared(spec: InputSpec, reached: Mapping[str, Span]) -> Iterator[tuple[str, Span, Span]]:
    """Yield what an input reaches, and how far it must: in all dtypes, and in bfloat16, which float16 cannot hold."""
    together = Span()
    for span in reached.values():
        together |= span
    yield "", together, wanted_reach(spec, DOMAIN_REACH)
    if "bfloat16" in reached:
        yield " in bfloat16", reached["bfloat16"], wanted_reach(spec, BFLOAT16_REACH)


def wanted_reach(spec: InputSpec, most: float) -> Span:
    """Return how far draws of an input must reach: half of its domain, but no further than `most`.

    A scalar must have both signs where its domain has.
    """
    low, high = spec.domain
    most = _LEAST_SCALAR if isinstance(spec, ScalarSpec) else most
    return Span(-min(most, max(-low, 0.0) / 2), min(most, max(high, 0.0) / 2))


def find_reach(task: Task, reference: Reference, generator: torch.Generator) -> dict[str, dict[str, Span]]:
    """Return how far each floating-point input reaches in cases that the CPU platform runs, by its dtype there."""
    cases = cpu_cases(task)
    found: dict[str, dict[str, Span]] = {}
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec) and spec.dtype == "float32":
            set_to = [float(case.values.get(spec.name, spec.value)) for case in cases]
            found[spec.name] = {spec.dtype: Span(min(set_to), max(set_to), 0.0 in set_to) if set_to else Span()}
    for case in cases:
        for _ in range(_DRAWS):
            draw = Draw.of(reference, arguments(task, case), generator)
            for name, dtype, span in _spans(draw):
                spans = found.setdefault(name, {})
                spans[dtype] = spans.get(dtype, Span()) | span
    return found


def holds_usual_numbers(draw: Draw) -> bool:
    """Return whether no input of a case with fills of its own is beyond `DOMAIN_REACH`, where sums may overflow.

    Other cases count as usual, whatever they drew: which cases a check takes must not be up to chance.
    """
    if not draw.arguments.case.fills:
        return True
    usual = Span(-DOMAIN_REACH, DOMAIN_REACH)
    return all(usual.covers(span) for _, _, span in _spans(draw))


def _spans(draw: Draw) -> Iterator[tuple[str, str, Span]]:
    """Yield the name, the dtype and the least and greatest finite number of each floating-point input."""
    for name, values in draw.inputs.items():
        if values.is_floating_point() and values.itemsize > 1:
            numbers = values.double()
            finite = numbers[numbers.isfinite()]
            yield name, str(values.dtype).removeprefix("torch."), _span(finite)


def _span(numbers: torch.Tensor) -> Span:
    if not numbers.numel():
        return Span()
    low, high = (float(end) for end in numbers.aminmax())
    return Span(low, high, bool((numbers == 0).any()))
