"""Check that a task's tolerance tells the arithmetic it allows from the next shorter one. No kernel is involved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from arena.checks.tasks.soundness import Draw, Tensors
from arena.judge.correctness.conditioning import MARGIN
from arena.judge.correctness.verify import OutputCheck, check_outputs, compared
from arena.results.check import CheckItem, CheckOutcome
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import Arithmetic, OutputComparison, Precision
from arena.task.numerics.arithmetic import SHORTER
from arena.task.numerics.comparison import default_tolerance

if TYPE_CHECKING:
    import torch

NAME = "arithmetic"
_ALLOWED = MARGIN * (1 + 2.0**-8)
"""of what is off by its whole share, the error is rounded as well: by half a unit of bfloat16, the coarsest output"""
_TRIES = 4
"""draws of every case: what shows by chance gets several chances"""
_MORE_TRIES = 12
"""further draws of every case, until one shows that the shorter arithmetic is too short"""


def arithmetic_item(draws: Sequence[Draw], generator: torch.Generator) -> CheckItem | None:
    """Return whether the allowed arithmetic passes with a margin of 2 and the next shorter one fails, for every format.

    None where no output is compared by closeness.
    """
    draws = [draw for draw in draws if _close(draw)]
    if not draws or draws[0].arguments.task.precision is not Precision.FLOAT64:
        return None
    everywhere = draws[0].arguments.task.arithmetic is Arithmetic.OPERATORS
    errors, right = [], True
    for name in dict.fromkeys(draw.arguments.operand_format for draw in draws):
        of_format = [draw for draw in draws if draw.arguments.operand_format == name]
        tried = [*of_format, *_fresh(of_format, generator, _TRIES - 1)]
        worst = max(_error(draw, name, everywhere=everywhere) for draw in tried)
        below, found = _below(tried, name)
        for _ in range(_MORE_TRIES):
            if found > 1:
                break
            below, found = max((below, found), _below([*_fresh(of_format, generator, 1)], name), key=itemgetter(1))
        errors.append(f"{name} {worst:.2g}, {below} {found:.2g}")
        right = right and worst <= _ALLOWED and found > 1
    if right:
        return CheckItem(NAME, CheckOutcome.PASSED, f"error over tolerance: {'; '.join(errors)}")
    return CheckItem(NAME, CheckOutcome.FAILED, message("check_arithmetic", errors="; ".join(errors), most=_ALLOWED))


def _fresh(draws: Sequence[Draw], generator: torch.Generator, times: int) -> Iterable[Draw]:
    return (Draw.of(draw.reference, draw.arguments, generator) for _ in range(times) for draw in draws)


def _below(draws: Sequence[Draw], name: str) -> tuple[str, float]:
    """Return what is too short, and its worst error: shorter operands, or without products shorter intermediates."""
    shorter = SHORTER[name]
    if draws[0].arguments.task.arithmetic is Arithmetic.OPERATORS:
        return f"results in {shorter}", max(_error(draw, shorter, everywhere=True) for draw in draws)
    products = max(_error(draw, shorter) for draw in draws)
    if products > 1:
        return f"products in {shorter}", products
    kept = shorter if name == "float32" else name
    return f"intermediates in {kept}", max(_error(draw, kept, everywhere=True) for draw in draws)


def _error(draw: Draw, number_format: str, *, everywhere: bool = False) -> float:
    found = draw.reference.in_arithmetic(draw.arguments, draw.inputs, number_format, everywhere=everywhere)
    return error_over_tolerance(draw, found)


def error_over_tolerance(draw: Draw, found: Tensors) -> float:
    """Return the worst of these results, rounded to the outputs' dtypes; outputs that are not close are right."""
    answers = {**draw.answers, **{name: found[name].to(draw.answers[name].dtype) for name in _close(draw)}}
    checked: OutputCheck = check_outputs(draw.arguments, draw.reference, draw.inputs, answers, draw.expected)
    if checked.status is Status.PASSED:
        return checked.error_ratio or 0.0
    return checked.error_ratio if checked.error_ratio is not None else float("inf")


def _close(draw: Draw) -> list[str]:
    """The outputs that are compared by closeness."""
    found = []
    for spec in compared(draw.arguments):
        tensor = draw.arguments.tensors[spec.name]
        assert tensor is not None
        if (spec.tolerance or default_tolerance(tensor.dtype)).comparison is OutputComparison.CLOSE:
            found.append(spec.name)
    return found
