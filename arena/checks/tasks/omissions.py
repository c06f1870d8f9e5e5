"""Omission mutants: what a kernel would answer that skips part of an input, leaves one out, or rounds it too coarsely.

No kernel is built. The reference computes on inputs in which what is skipped has been replaced; the judge must reject
that answer for the original inputs. A mutant whose answers never differ is equivalent: nobody has to read that part.
Used by `arena tasks check --mutants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena.checks.tasks.soundness import Draw, by_work
from arena.judge.selection import emulation_work
from arena.results.check import CheckItem, CheckOutcome, MutantFate, scored
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import Arguments, Case, ScalarSpec, Task, arguments
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

_DRAWS = 6
"""an evaluation compares three seeds of a case, and some rounds of its timing"""
_SMALL_WORK, _SMALL_CASES = 3e5, 5
_LARGE_WORK, _LARGE_BYTES = 3e9, 8e6
_LEAST_POSITIONS = 8
_SKIPPED = 8
"""one position in so many is skipped"""
_LEAST_RESULTS = 1024
"""elements of all outputs; rounding of fewer is not checked: chance decides, and nobody gains by it"""
_LEAST_ROW = 32
"""elements of a row that share a scale in int8 and fp8; fewer are as exact as 16 bits"""
_SMALL = 0.25
"""share of the elements that count as small"""
_INT8_STEPS, _FP8_MOST = 127.0, 448.0
_TF32_HIDDEN_BITS = 13
EQUIVALENT = "its answers are those of the definition in every draw"
_NARROW = ("float16", "bfloat16")
Part = Callable[["torch.Tensor", int, "torch.Generator"], "torch.Tensor"]
Whole = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True)
class Omission:
    """One mutant: its operator, the input it concerns and, for a part, the dimension."""

    operator: str
    argument: str
    dimension: int | None = None

    @property
    def saves_work(self) -> bool:
        """Return whether a kernel gains time by it on large shapes."""
        return self.operator not in SCALARS

    @property
    def name(self) -> str:
        """`key:0 suffix`, or `bias zeros`."""
        where = "" if self.dimension is None else f":{self.dimension}"
        return f"{self.argument}{where} {self.operator}"

    def apply(self, draw: Draw, generator: torch.Generator) -> Draw | None:
        """The same draw with the input changed; None where the case has no such part."""
        values = draw.inputs.get(self.argument)
        if values is None:
            return self._on_scalar(draw)
        if self.dimension is not None:
            if values.ndim <= self.dimension or values.shape[self.dimension] < _LEAST_POSITIONS:
                return None
            changed = PARTS[self.operator](values, self.dimension, generator)
        elif not _wanted(self.operator, self.argument, draw):
            return None
        else:
            changed = WHOLES[self.operator](values)
        return Draw(draw.reference, draw.arguments, {**draw.inputs, self.argument: changed})

    def _on_scalar(self, draw: Draw) -> Draw | None:
        spec = next((spec for spec in draw.arguments.task.inputs if spec.name == self.argument), None)
        if not isinstance(spec, ScalarSpec) or self.operator not in SCALARS:
            return None
        case = replace(draw.arguments.case, values={**draw.arguments.case.values, spec.name: SCALARS[self.operator]})
        changed = arguments(draw.arguments.task, case)
        if not all(constraint.value(changed.names) for constraint in changed.task.constraints):
            return None
        return Draw(draw.reference, changed, draw.inputs)


def try_omissions(
    task: Task, reference: Reference, generator: torch.Generator, report: Callable[[int, int], None]
) -> tuple[MutantFate, ...]:
    """Return the fate of every omission mutant over a few cases, each drawn several times.

    `report`: called with how many mutants are done, and of how many.
    """
    drawn = [
        [Draw.of(reference, arguments(task, case), generator) for _ in range(_DRAWS)]
        for case in discriminating_cases(task)
    ]
    fates = []
    omissions = list(derive(task, [draws[0] for draws in drawn]))
    for number, omission in enumerate(omissions):
        report(number, len(omissions))
        found = [(*_fate(omission, draws, generator), draws[0]) for draws in drawn]
        status, reason, where = _worst(found, everywhere=omission.saves_work)
        if status is not Status.NOT_RUN:
            reason = task.equivalent_mutants.get(omission.name, reason)
            fates.append(MutantFate(omission.name, 0, f"{_describe(omission)}{where}", status, reason))
    return tuple(fates)


def omissions_item(fates: Sequence[MutantFate]) -> CheckItem:
    """Judge the fates: enough of those that count are rejected, and the others are named."""
    counted = [fate for fate in fates if not fate.equivalent]
    if not counted:
        return CheckItem("omissions", CheckOutcome.NOT_CHECKED, message("check_no_numbers"))
    return scored("omissions", counted)


def discriminating_cases(task: Task) -> list[Case]:
    """Choose small cases of every combination of dtypes, the largest affordable one, and the one of longest rows."""
    ordered = by_work(task, task.cases)
    cheap = [case for case in ordered if emulation_work(arguments(task, case)) <= _SMALL_WORK] or ordered[:2]
    firsts = {tuple(case.values[name] for name in task.dtypes): case for case in cheap}
    rest = [case for case in reversed(cheap) if case not in firsts.values()]
    chosen = [*firsts.values(), *rest][: max(_SMALL_CASES, len(firsts))]
    large = [case for case in ordered if case not in chosen and _affordable(arguments(task, case))]
    if large:
        longest = max(large, key=lambda case: _longest(arguments(task, case)))
        chosen += [large[-1], longest] if longest is not large[-1] else [longest]
    return chosen


def _affordable(worked_out: Arguments) -> bool:
    return emulation_work(worked_out) <= _LARGE_WORK and worked_out.held_bytes <= _LARGE_BYTES


def _longest(worked_out: Arguments) -> int:
    """Elements of the longest dimension of any tensor."""
    return max((size for tensor in worked_out.tensors.values() if tensor for size in tensor.shape), default=0)


def _worst(found: Sequence[tuple[Status, str, Draw]], *, everywhere: bool) -> tuple[Status, str, str]:
    """Of the fates in single cases the one that counts.

    `everywhere`: what saves work must fail in each case, since a kernel may take a shortcut for some shapes alone.
    """
    survived = [draw for status, reason, draw in found if status is Status.PASSED and not reason]
    rejected = any(status is Status.WRONG_RESULT for status, _, _ in found)
    if survived and (everywhere or not rejected):
        return Status.PASSED, "", f" in {survived[0].arguments.case.label}"
    if rejected:
        return Status.WRONG_RESULT, "", ""
    return next(((status, reason, "") for status, reason, _ in found if reason), (Status.NOT_RUN, "", ""))


def derive(task: Task, draws: Sequence[Draw]) -> Iterator[Omission]:
    """Yield the mutants of a task: every operator on every input, or dimension of one, that it applies to."""
    ranks: dict[str, int] = {}
    for draw in draws:
        for name, values in draw.inputs.items():
            if _is_data(values):
                ranks[name] = values.ndim
    for name, rank in ranks.items():
        for dimension in range(rank):
            yield from (Omission(operator, name, dimension) for operator in PARTS)
        yield from (Omission(operator, name) for operator in WHOLES)
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec) and spec.dtype == "float32":
            yield from (Omission(operator, spec.name) for operator in SCALARS)


def _fate(omission: Omission, draws: Sequence[Draw], generator: torch.Generator) -> tuple[Status, str]:
    """`not_run` where it applies to no draw, `passed` where each accepts it; and why it is equivalent, if it is."""
    applied = differs = False
    for draw in draws:
        changed = omission.apply(draw, generator)
        if changed is None:
            continue
        applied = True
        try:
            answers = changed.answers
        except Exception:
            return Status.WRONG_RESULT, ""
        if not draw.accepts(answers):
            return Status.WRONG_RESULT, ""
        differs = differs or _differ(changed.expected, draw.expected)
    if not applied:
        return Status.NOT_RUN, ""
    return Status.PASSED, "" if differs else EQUIVALENT


def _differ(some: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> bool:
    return any(bool(_changed(value, others[name]).any()) for name, value in some.items())


def _changed(some: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return which elements differ; NaN is NaN."""
    return (some != other) & ~(some.isnan() & other.isnan())


def _is_summed_over(draw: Draw, name: str) -> bool:
    """Return whether some result depends on both halves of a row of this input, as that of a product does."""
    values = draw.inputs[name]
    half = values.shape[-1] // 2
    found = []
    for part in (slice(None, half), slice(half, None)):
        changed = values.clone()
        changed[..., part] = changed[..., part].flip(-1) * 0.5
        found.append(Draw(draw.reference, draw.arguments, {**draw.inputs, name: changed}).expected)
    first, second = found
    return any(
        bool((_changed(first[output], value) & _changed(second[output], value)).any())
        for output, value in draw.expected.items()
    )


def _is_data(values: torch.Tensor) -> bool:
    """Return whether a tensor holds numbers to compute with: floats, or codes of one byte; not indices."""
    import torch

    return values.is_floating_point() or values.dtype in (torch.int8, torch.uint8)


def _wanted(operator: str, name: str, draw: Draw) -> bool:
    """Return whether an operator on a whole input means something for it: rounding to less than what the task asks for.

    Float32 inputs of 16-bit outputs may be rounded to TF32: the output's own rounding is four times as coarse. And
    only of sums can more be computed in a given time from coarser numbers.
    """
    values = draw.inputs[name]
    if not values.is_floating_point():
        return operator in ("zeros", "ones")
    dtype = str(values.dtype).removeprefix("torch.")
    if operator in ROUNDINGS:
        coarse = dtype in _NARROW if operator in ("int8", "fp8") else dtype == "float32" and _exact(draw)
        large = values.ndim > 1 and values.shape[-1] >= _LEAST_ROW and _results(draw) >= _LEAST_RESULTS
        return coarse and large and _is_summed_over(draw, name)
    return True


def _exact(draw: Draw) -> bool:
    """Return whether every floating output is float32: what then is coarser than that is forbidden."""
    import torch

    return all(v.dtype == torch.float32 for v in draw.answers.values() if v.is_floating_point())


def _results(draw: Draw) -> int:
    """Elements of the largest output."""
    return max((values.numel() for values in draw.answers.values()), default=0)


def _describe(omission: Omission) -> str:
    where = "" if omission.dimension is None else f" along dimension {omission.dimension}"
    return f"{_WORDS[omission.operator]} of {omission.argument}{where}"


def _copied(values: torch.Tensor, dimension: int, skipped: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Skipped positions hold copies of others, drawn at random: what who extrapolates from the others computes with."""
    import torch

    count = values.shape[dimension]
    kept = torch.tensor(sorted(set(range(count)) - set(skipped.tolist())))
    source = torch.arange(count)
    source[skipped] = kept[torch.randint(0, len(kept), (len(skipped),), generator=generator)]
    return values.index_select(dimension, source)


def _subset(values: torch.Tensor, dimension: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    count = values.shape[dimension]
    return _copied(values, dimension, torch.randperm(count, generator=generator)[: count // _SKIPPED], generator)


def _suffix(values: torch.Tensor, dimension: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    count = values.shape[dimension]
    return _copied(values, dimension, torch.arange(count - count // _SKIPPED, count), generator)


def _prefix(values: torch.Tensor, dimension: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return _copied(values, dimension, torch.arange(values.shape[dimension] // _SKIPPED), generator)


def _without_small(values: torch.Tensor) -> torch.Tensor:
    """The smallest elements are 0. Of large tensors the threshold is that of a sample."""
    import torch

    magnitudes = values.double().abs().flatten()
    threshold = magnitudes[:: 1 + magnitudes.numel() // 100_000].nanquantile(_SMALL)
    return torch.where(values.double().abs() <= threshold, 0.0, values.double()).to(values.dtype)


def _in_int8(values: torch.Tensor) -> torch.Tensor:
    """Round each row to 127 steps of its largest magnitude."""
    step = values.double().abs().amax(dim=-1, keepdim=True).clamp(min=1e-30) / _INT8_STEPS
    return ((values.double() / step).round() * step).to(values.dtype)


def _in_fp8(values: torch.Tensor) -> torch.Tensor:
    """Round to float8_e4m3fn, each row scaled to its range."""
    import torch

    scale = values.float().abs().amax(dim=-1, keepdim=True).clamp(min=1e-30) / _FP8_MOST
    return ((values.float() / scale).to(torch.float8_e4m3fn).float() * scale).to(values.dtype)


def _in_tf32(values: torch.Tensor) -> torch.Tensor:
    """Round to 10 bits of mantissa, to nearest and ties to even, as matrix units do."""
    import torch

    bits = values.contiguous().view(torch.int32)
    odd = (bits >> _TF32_HIDDEN_BITS) & 1
    rounded = (bits + (1 << (_TF32_HIDDEN_BITS - 1)) - 1 + odd) >> _TF32_HIDDEN_BITS << _TF32_HIDDEN_BITS
    return torch.where(values.isfinite(), rounded.view(torch.float32), values)


PARTS: dict[str, Part] = {"subset": _subset, "suffix": _suffix, "prefix": _prefix}
WHOLES: dict[str, Whole] = {
    "small": _without_small,
    "zeros": lambda values: values.new_zeros(()).expand_as(values).contiguous(),
    "ones": lambda values: values.new_ones(()).expand_as(values).contiguous(),
    "int8": _in_int8,
    "fp8": _in_fp8,
    "tf32": _in_tf32,
}
ROUNDINGS = ("int8", "fp8", "tf32")
SCALARS = {"zeros": 0.0, "ones": 1.0}
_WORDS = {
    "subset": "a random eighth",
    "suffix": "the last eighth",
    "prefix": "the first eighth",
    "small": "the smallest quarter",
    "zeros": "0 instead",
    "ones": "1 instead",
    "int8": "rounding to int8",
    "fp8": "rounding to float8_e4m3fn",
    "tf32": "rounding to TF32",
}
