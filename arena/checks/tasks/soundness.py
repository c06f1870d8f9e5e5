"""Check a task's definition: its reference, inputs and tolerances; no kernel is involved.

Each works on small cases by answers that a task must not accept, or by inputs that must make a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from arena.errors import FileError
from arena.judge.correctness.inputs import draw_inputs
from arena.judge.correctness.sampled import rows_of, sampled
from arena.judge.correctness.verify import check_outputs, compared
from arena.judge.selection import emulation_work
from arena.results.check import CheckItem, CheckOutcome
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import ASYMMETRIC, Arguments, Case, Scalar, ScalarSpec, Task, TensorSpec, arguments
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.operations import count_operations
from arena.task.numerics.reference import Reference
from arena.task.rules import reason_for

if TYPE_CHECKING:
    import torch

_LEAST_ELEMENTS = 8
_NEAR_ZERO = 1e-3
_TRIES = 4
_FEW_SETS, _MANY_SETS = 2, 66
_COARSER = {"float32": "bfloat16", "float64": "float32"}
Tensors = dict[str, "torch.Tensor"]


def by_work(task: Task, cases: Sequence[Case]) -> list[Case]:
    """Order cases by the work of their emulation, for a check of the definition.

    Those of the kind `asymmetric` are left out where there are others: with one long axis and the others of a size or
    two, sums have one term, and many a wrong answer is right.
    """
    telling = [case for case in cases if case.kind != ASYMMETRIC] or cases
    return sorted(telling, key=lambda case: emulation_work(arguments(task, case)))


def generator_for(task: Task) -> torch.Generator:
    """Return what draws the inputs of a check of the definition: the same for the same files, so that a verdict stays.

    No kernel sees them, so that nobody need be kept from guessing them.
    """
    import torch

    return torch.Generator("cpu").manual_seed(int(task.content_hash[:16], 16))


@dataclass(frozen=True)
class Draw:
    """One case with one set of inputs, and the reference's answers in the outputs' own dtypes."""

    reference: Reference
    arguments: Arguments
    inputs: Tensors

    @staticmethod
    def of(reference: Reference, worked_out: Arguments, generator: torch.Generator) -> Draw:
        """Fresh inputs."""
        drawn = draw_inputs(worked_out, reference, 1, generator)
        return Draw(reference, worked_out, {name: values[0] for name, values in drawn.items()})

    @cached_property
    def expected(self) -> Tensors:
        """Return what the reference computes, in its own precision."""
        return self.reference(self.arguments, self.inputs)

    @cached_property
    def answers(self) -> Tensors:
        """Return what a perfect kernel leaves behind."""
        expected = self.expected
        return {spec.name: expected[spec.name].to(torch_dtype(self._dtype(spec))) for spec in compared(self.arguments)}

    def accepts(self, answers: Tensors) -> bool:
        """Return whether these answers would pass for this draw's inputs."""
        finding = check_outputs(self.arguments, self.reference, self.inputs, answers, self.expected)
        return finding.status is Status.PASSED

    def accepts_one(self, name: str, answer: torch.Tensor) -> bool:
        """Return whether one answer would pass beside the right others."""
        return self.accepts({**self.answers, name: answer})

    def _dtype(self, spec: TensorSpec) -> str:
        tensor = self.arguments.tensors[spec.name]
        assert tensor is not None
        return tensor.dtype


Trick = Callable[[Draw, Draw, str], "torch.Tensor | None"]


def check_definition(
    task: Task, reference: Reference, cases: Sequence[Case], generator: torch.Generator
) -> Iterator[CheckItem]:
    """The items that need no kernel, over small cases."""
    try:
        draws = [Draw.of(reference, arguments(task, case), generator) for case in cases]
        for draw in draws:
            reference.validate(draw.arguments, draw.inputs)
        others = [Draw.of(reference, draw.arguments, generator) for draw in draws]
        differing = [draw for draw in draws if not draw.accepts(draw.answers)]
        if differing:
            detail = message("check_reference_varies", case=differing[0].arguments.case.label)
            yield CheckItem("reference", CheckOutcome.FAILED, detail)
            return
    except Exception as problem:  # a reference is the task's own code, and may raise whatever it likes
        raised = str(problem) if isinstance(problem, FileError) else f"{type(problem).__name__}: {problem}"
        yield CheckItem("reference", CheckOutcome.FAILED, message("check_reference_failed", problem=raised))
        return
    yield CheckItem("reference", CheckOutcome.PASSED, f"its answers pass in {len(draws)} cases")
    yield unless_declared(task, _degenerate(draws))
    yield unless_declared(task, _vacuous(draws, others, generator))
    yield from _sensitivity(task, draws, generator)
    yield unless_declared(task, _drawn_at_once(draws, generator))
    if task.independent:
        yield _independent(task, draws)


def _independent(task: Task, draws: Sequence[Draw]) -> CheckItem:
    """Every other row along the axis of `independent`, alone, gives what it gives among all rows."""
    import torch

    for draw in draws:
        rows = torch.arange(0, int(draw.arguments.names[task.independent]), 2)
        inputs, answers = (rows_of(draw.arguments, tensors, rows) for tensors in (draw.inputs, draw.answers))
        if not Draw(draw.reference, sampled(draw.arguments, rows), inputs).accepts(answers):
            detail = message("check_rows_dependent", axis=task.independent, case=draw.arguments.case.label)
            return CheckItem("independent", CheckOutcome.FAILED, detail)
    return CheckItem("independent", CheckOutcome.PASSED, f"rows along {task.independent} in {len(draws)} cases")


def unless_declared(task: Task, item: CheckItem) -> CheckItem:
    """The item, or where it failed and the task gives a reason, that."""
    reason = reason_for(task.exceptions, item.name)
    return (
        CheckItem(item.name, CheckOutcome.DECLARED, reason) if reason and item.outcome is CheckOutcome.FAILED else item
    )


def _drawn_at_once(draws: Sequence[Draw], generator: torch.Generator) -> CheckItem:
    """Many sets take no more operations than few: every round of a timing draws hundreds, and each is a launch."""
    smallest = min(draws, key=lambda draw: draw.arguments.num_bytes)
    # Uneven draws take more operations for some patterns than for others, whatever the number of sets.
    draw_sets = partial(draw_inputs, smallest.arguments, smallest.reference, generator=generator, uneven=False)
    few, many = (count_operations(partial(draw_sets, sets)) for sets in (_FEW_SETS, _MANY_SETS))
    if many < few + _MANY_SETS - _FEW_SETS:
        return CheckItem("drawn at once", CheckOutcome.PASSED)
    counted = {"many_operations": many, "few_operations": few}
    detail = message("check_inputs_drawn_singly", many=_MANY_SETS, few=_FEW_SETS, **counted)
    return CheckItem("drawn at once", CheckOutcome.FAILED, detail)


def _degenerate(draws: Sequence[Draw]) -> CheckItem:
    """Every output varies, and is not next to nothing, in some case."""
    for spec in _outputs(draws):
        values = [d.answers[spec.name] for d in draws if spec.name in d.answers]
        large = [value.double() for value in values if value.numel() >= _LEAST_ELEMENTS]
        if large and not any(bool((value != value.flatten()[0]).any()) for value in large):
            return CheckItem("outputs vary", CheckOutcome.FAILED, message("check_output_constant", output=spec.name))
        floating = [value.double() for value in values if value.is_floating_point()]
        rms = max(map(_rms, floating), default=1.0)
        if rms < _NEAR_ZERO:
            detail = message("check_output_near_zero", output=spec.name, rms=rms)
            return CheckItem("outputs vary", CheckOutcome.FAILED, detail)
    return CheckItem("outputs vary", CheckOutcome.PASSED)


def _vacuous(draws: Sequence[Draw], others: Sequence[Draw], generator: torch.Generator) -> CheckItem:
    """Answers that took no computing must be rejected, as must results of bfloat16 accuracy where products are float32.

    One number may by chance be as good as its coarser version: who passes everywhere is tried on more draws.
    """
    for spec in _outputs(draws):
        for trick, answer in _TRICKS.items():
            tried = _passes(spec.name, answer, draws, others)
            for _ in range(_TRIES - 1):
                if not (tried and all(tried)):
                    break
                fresh = [[Draw.of(d.reference, d.arguments, generator) for d in draws] for _ in range(2)]
                tried = _passes(spec.name, answer, *fresh)
            if tried and all(tried):
                detail = message("check_trick_accepted", output=spec.name, trick=trick, cases=len(tried))
                return CheckItem("tolerance", CheckOutcome.FAILED, detail)
    return CheckItem("tolerance", CheckOutcome.PASSED, f"rejects {', '.join(_TRICKS)}")


def _passes(name: str, answer: Trick, draws: Sequence[Draw], others: Sequence[Draw]) -> list[bool]:
    """Return whether a wrong answer to one output is accepted, for each draw that has one."""
    return [
        draw.accepts_one(name, wrong)
        for draw, other in zip(draws, others, strict=True)
        if name in draw.answers and (wrong := answer(draw, other, name)) is not None
    ]


def _zeros(draw: Draw, _: Draw, name: str) -> torch.Tensor | None:
    import torch

    return torch.zeros_like(draw.answers[name]) if draw.answers[name].numel() else None


def _mean(draw: Draw, _: Draw, name: str) -> torch.Tensor | None:
    answer = draw.answers[name]
    if answer.numel() < _LEAST_ELEMENTS:
        return None
    return (answer.double() * 0 + answer.double().mean()).to(answer.dtype)


def _stale(draw: Draw, other: Draw, name: str) -> torch.Tensor | None:
    return other.answers[name] if draw.answers[name].numel() else None


def _input(draw: Draw, _: Draw, name: str) -> torch.Tensor | None:
    answer = draw.answers[name]
    if answer.numel() < _LEAST_ELEMENTS:
        return None
    return next((v for v in draw.inputs.values() if (v.shape, v.dtype) == (answer.shape, answer.dtype)), None)


def _coarse(draw: Draw, _: Draw, name: str) -> torch.Tensor | None:
    answer = draw.answers[name]
    coarser = _COARSER.get(str(answer.dtype).removeprefix("torch."))
    if draw.arguments.operand_format != "float32":
        return None
    return None if coarser is None or not answer.numel() else answer.to(torch_dtype(coarser)).to(answer.dtype)


_TRICKS: dict[str, Trick] = {
    "zeros": _zeros,
    "the mean": _mean,
    "an input": _input,
    "the answer to other inputs": _stale,
    "a coarser float": _coarse,
}


def _sensitivity(task: Task, draws: Sequence[Draw], generator: torch.Generator) -> Iterator[CheckItem]:
    """Every output changes with every input, beyond its tolerance, in some case."""
    for spec in task.inputs:
        if _shapes(task, spec.name):
            yield CheckItem(f"{spec.name} matters", CheckOutcome.PASSED, "shapes depend on it")
            continue
        declared = {output.name: _reason(task, output.name, spec.name) for output in _outputs(draws)}
        reasons = {
            output: reason
            for output, reason in declared.items()
            if not _depends(output, spec.name, draws, generator, tries=1 if reason else _TRIES)
        }
        unexplained = [f"{output} ignores {spec.name}" for output, reason in reasons.items() if not reason]
        name = f"{spec.name} matters"
        if unexplained:
            detail = message("check_input_ignored", ignored=", ".join(unexplained))
            yield CheckItem(name, CheckOutcome.FAILED, detail)
        elif reasons:
            said = "; ".join(f"{output} ignores it: {reason}" for output, reason in reasons.items())
            yield CheckItem(name, CheckOutcome.DECLARED, said)
        else:
            yield CheckItem(name, CheckOutcome.PASSED)


def _shapes(task: Task, name: str) -> bool:
    """Return whether an argument is a scalar that a shape is made from: another one gives other tensors."""
    return any(name in size.names for spec in task.tensors for size in (*spec.shape, *spec.strides))


def _reason(task: Task, output: str, name: str) -> str:
    """Why an output need not depend on an input: `exceptions: {"y ignores a, b": "…"}`."""
    for key, reason in task.exceptions.items():
        who, _, what = key.partition(" ignores ")
        if who == output and name in (part.strip() for part in what.split(",")):
            return reason
    return ""


def _depends(output: str, name: str, draws: Sequence[Draw], generator: torch.Generator, tries: int) -> bool:
    """Return whether exchanging the input changes the output in some case, within several draws."""
    return any(
        _answers_otherwise(draw, changed, output)
        for number in range(tries)
        for first in draws
        if output in first.answers
        for draw in [first if number == 0 else Draw.of(first.reference, first.arguments, generator)]
        for changed in _with_another(draw, name, generator)
    )


def _answers_otherwise(draw: Draw, changed: Draw, output: str) -> bool:
    """Return whether the answer to exchanged inputs is not one to the old; unfitting inputs have none."""
    try:
        answer = changed.answers[output]
    except Exception:
        return True
    return not draw.accepts_one(output, answer)


def _with_another(draw: Draw, name: str, generator: torch.Generator) -> Iterator[Draw]:
    """The draw with one input exchanged: drawn again, or, for a scalar, each other value that a case gives it."""
    spec = next(spec for spec in draw.arguments.task.inputs if spec.name == name)
    if isinstance(spec, ScalarSpec):
        for value in _other_values(draw.arguments, spec):
            case = replace(draw.arguments.case, values={**draw.arguments.case.values, name: value})
            changed = arguments(draw.arguments.task, case)
            if all(constraint.value(changed.names) for constraint in changed.task.constraints):
                yield Draw(draw.reference, changed, draw.inputs)
    elif name in draw.inputs:
        again = draw_inputs(draw.arguments, draw.reference, 1, generator)
        yield Draw(draw.reference, draw.arguments, {**draw.inputs, name: again[name][0]})


def _other_values(worked_out: Arguments, spec: ScalarSpec) -> list[Scalar]:
    """Other values from the task's own cases, since those are sure to be admissible; for a flag, its opposite."""
    now = worked_out.scalar(spec)
    if isinstance(now, bool):
        return [not now]
    said = {case.values.get(spec.name, spec.value) for case in worked_out.task.cases} | {spec.value}
    return sorted(value for value in said if not isinstance(value, str) and value != now)


def _outputs(draws: Sequence[Draw]) -> list[TensorSpec]:
    """Every tensor that some case is judged by."""
    return list({spec.name: spec for draw in draws for spec in compared(draw.arguments)}.values())


def _rms(values: torch.Tensor) -> float:
    finite = values[values.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0
