"""Check that memory which no result depends on is spoiled, as that of engines is: padding, unused pages, idle experts.

No kernel is built. Where the reference gives the same answers though some rows of an input are NaN, nobody has to read
them; a kernel that does, and multiplies by 0, is right only as long as they happen to be finite. `unread` of
reference.py names them, and the judge writes NaN to some; what it could name besides is said in the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.checks.tasks.rules import rule_item
from arena.checks.tasks.soundness import Draw, Tensors
from arena.judge.correctness.inputs import spoil
from arena.judge.correctness.verify import compared
from arena.results.check import CheckItem
from arena.results.messages import message
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.rules import RuleLevel

if TYPE_CHECKING:
    import torch

LEAST_SHARE = 0.02
"""of the rows of an input in the case where most are unread; fewer are met by chance"""
_MOST_CALLS = 40
"""of the reference, for one input"""


def unread_item(
    task: Task, reference: Reference, cases: Sequence[Case], level: RuleLevel, generator: torch.Generator
) -> CheckItem:
    """Return the item `unread memory`: what is named is unread. It says also what else is."""
    draws = [Draw.of(reference, arguments(task, case), generator) for case in cases]
    wrong = [draw for draw in draws if reference.has_unread and not _same(draw, _spoiled(draw, generator))]
    if wrong:
        problem = message("check_unread_needed", case=wrong[0].arguments.case.label)
        return rule_item(task, level, "unread memory", problem)
    left = ", ".join(f"{share:.0%} of {name}" for name, share in _left(draws) if share >= LEAST_SHARE)
    return rule_item(task, level, "unread memory", "", f"nobody reads {left} either" if left else "")


def _spoiled(draw: Draw, generator: torch.Generator) -> Tensors:
    """Return the inputs with NaN wherever the task says that nothing is read."""
    many = {name: values[None].clone() for name, values in draw.inputs.items()}
    spoil(many, draw.arguments, draw.reference, generator, share=1.0)
    return {name: values[0] for name, values in many.items()}


def _left(draws: Sequence[Draw]) -> Iterator[tuple[str, float]]:
    """Yield for each floating input the greatest share of its rows, over the draws, that is unread and not named."""
    results = {spec.name for draw in draws for spec in compared(draw.arguments)}
    names = {name for draw in draws for name in draw.inputs}
    for name in sorted(names - results):
        yield name, max(_unread_share(draw, name) for draw in draws if name in draw.inputs)


def _unread_share(draw: Draw, name: str) -> float:
    import torch

    values = draw.inputs[name]
    if values.dim() < 1 or not values.numel() or not _holds_nan(values):
        return 0.0
    width = values.shape[-1] if values.dim() > 1 else 1
    rows = values.reshape(-1, width)
    named = _named_rows(draw, name, rows)
    count = len(rows)
    calls, unread = 0, 0
    pieces = [(0, count)]
    while pieces and calls < _MOST_CALLS:
        first, end = pieces.pop(0)
        spoiled = rows.clone()
        spoiled[first:end] = torch.full((1,), torch.nan).to(spoiled.dtype)
        calls += 1
        if _same(draw, {**draw.inputs, name: spoiled.view(values.shape)}):
            unread += int((~named[first:end]).sum())
        elif end - first > 1:
            middle = (first + end) // 2
            pieces += [(first, middle), (middle, end)]
    return unread / count


def _holds_nan(values: torch.Tensor) -> bool:
    """Return whether a dtype has NaN: integers, of which another case may draw the input, and float4 have none."""
    import torch

    return values.is_floating_point() and bool(torch.full((1,), torch.nan).to(values.dtype).float().isnan())


def _named_rows(draw: Draw, name: str, rows: torch.Tensor) -> torch.Tensor:
    import torch

    masks = {}
    if draw.reference.has_unread:
        many = {key: values[None] for key, values in draw.inputs.items()}
        masks = draw.reference.unread(draw.arguments, many)
    if name not in masks:
        return torch.zeros(len(rows), dtype=torch.bool)
    mask = masks[name][0]
    values = draw.inputs[name]
    whole = mask.view(*mask.shape, *[1] * (values.dim() - mask.dim())).expand(values.shape)
    return whole.reshape(rows.shape).all(dim=-1)


def _same(draw: Draw, inputs: Tensors) -> bool:
    """Return whether the reference gives the same answers to other inputs, or cannot compute them at all."""
    changed = Draw(draw.reference, draw.arguments, inputs)
    try:
        found = changed.expected
    except Exception:
        return False
    return all(_equal(value, draw.expected[name]) for name, value in found.items())


def _equal(some: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        bool(((some == other) | (some.isnan() & other.isnan())).all())
        if some.is_floating_point()
        else bool((some == other).all())
    )
