"""Verify what one call left behind, by the judge's own copies and the shared buffer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.conditioning import MARGIN, is_small, leeway, may_be_rounding
from arena.judge.correctness.poison import integer_dtype
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import Arguments, OutputComparison, Tensor, TensorSpec, Tolerance
from arena.task.numerics.comparison import allowed_regret, close_errors, default_tolerance, error_ratio
from arena.task.numerics.dtypes import bounds, torch_dtype
from arena.task.numerics.reference import FEW, Reference
from arena.task.numerics.wrong_elements import describe_regret, describe_wrong

if TYPE_CHECKING:
    import torch

Tensors = Mapping[str, "torch.Tensor"]


@dataclass(frozen=True)
class OutputCheck:
    """`passed`, or the first thing that is wrong, and `error_ratio`: the worst error over what is allowed.

    `call_s`: what a call on the last draw took, in seconds, the way to the worker included; no part of the finding.
    """

    status: Status
    detail: str = ""
    error_ratio: float | None = None
    call_s: float | None = field(default=None, compare=False)


GOOD = OutputCheck(Status.PASSED)


def check_results(arguments: Arguments, reference: Reference, inputs: Tensors, sets: Sets, index: int) -> OutputCheck:
    """Compare every output and mutable input of one set with the reference run on the judge's copy of its inputs."""
    outputs = {spec.name: sets.view(spec.name)[index] for spec in compared(arguments)}
    return check_outputs(arguments, reference, inputs, outputs)


def check_outputs(
    arguments: Arguments,
    reference: Reference,
    inputs: Tensors,
    outputs: Tensors,
    expected: Tensors | None = None,
    *,
    enough: float = MARGIN,
    errors: dict[str, float] | None = None,
) -> OutputCheck:
    """Compare outputs and mutable inputs by name with what the reference makes of the inputs.

    `expected`: what it makes of them, where that is known already. `enough`: an error of this share of the least
    tolerance is not held against the arithmetic that the task allows, which takes several times the reference's time.
    `errors`: of that arithmetic in earlier draws of the case, by name, the least that were computed. Those of this draw
    are not, where an output is within half of what they allow. Of few elements they say nothing about another draw.
    """
    if expected is None:
        # What a reference makes of no tensors would be made on the CPU, which takes 0.2 to 0.9 s where it is large.
        where = nullcontext() if inputs or not outputs else next(iter(outputs.values())).device
        with where:
            expected = reference(arguments, inputs)
    closeness = _Closeness(arguments, reference, inputs, expected, {} if errors is None else errors)
    worst = 0.0
    for name, wanted in expected.items():
        tensor = arguments.tensors[name]
        if tensor is None:
            continue
        tolerance = tensor.spec.tolerance or default_tolerance(tensor.dtype)
        actual = _as_written(outputs[name])
        if tolerance.comparison is OutputComparison.DECISION:
            ratio, said = _regret(reference.regret(arguments, inputs, outputs)[name], tolerance)
        else:
            wanted = wanted.to(dtype=actual.dtype) if tensor.dtype == "bool" else wanted
            wanted = wanted.to(actual.device)  # a reference without tensor inputs knows no device
            ratio, said = float(error_ratio(actual, wanted, tolerance, tensor.dtype)), ""
            error, more = 0.0, 1.0
            if tolerance.comparison is OutputComparison.CLOSE and not ratio <= enough:
                ratio, error, more = closeness.ratio(tensor, actual, wanted, tolerance, ratio)
            if not ratio <= 1:
                said = describe_wrong(actual, wanted, tolerance, tensor.dtype, more, error)
        if not ratio <= 1:
            return OutputCheck(Status.WRONG_RESULT, message("output_wrong", output=name, elements=said), ratio)
        worst = max(worst, ratio)
    return OutputCheck(Status.PASSED, error_ratio=worst)


def comparison_of(arguments: Arguments, name: str) -> OutputComparison:
    """Return how an output or a mutable input is compared."""
    tensor = arguments.tensors[name]
    assert tensor is not None
    return (tensor.spec.tolerance or default_tolerance(tensor.dtype)).comparison


def allowed_errors(
    arguments: Arguments, reference: Reference, inputs: Tensors, expected: Tensors
) -> dict[str, torch.Tensor]:
    """Return the error that each element may have, float64 of the output's shape, by name.

    Without outputs that are not compared element by element. Where rounding of the inputs may excuse an error, the
    larger of both bounds counts, as in `check_outputs`.
    """
    import torch

    errors, allowed = reference.arithmetic_errors(arguments, inputs, expected), {}
    for name, wanted in expected.items():
        tensor, comparison = arguments.tensors[name], comparison_of(arguments, name)
        assert tensor is not None
        if comparison is OutputComparison.EXACT:
            allowed[name] = torch.zeros(wanted.shape, dtype=torch.float64)
        if comparison is OutputComparison.CLOSE:
            tolerance = tensor.spec.tolerance or default_tolerance(tensor.dtype)
            rounded = wanted.to(torch_dtype(tensor.dtype))
            limit = close_errors(rounded, wanted, *bounds(tolerance, tensor.dtype, errors.get(name, 0.0)))[1]
            if is_small(tensor, arguments):
                least = close_errors(rounded, wanted, *bounds(tolerance, tensor.dtype, 0.0))[1]
                limit = torch.maximum(limit, least * leeway(arguments, reference, inputs, name, wanted, tolerance))
            allowed[name] = limit
    return allowed


class _Closeness:
    """Bounds of one draw beyond the least tolerance: errors of the allowed arithmetic, and of rounded inputs."""

    def __init__(
        self,
        arguments: Arguments,
        reference: Reference,
        inputs: Tensors,
        expected: Tensors,
        earlier: dict[str, float],
    ) -> None:
        self._draw = arguments, reference, inputs
        self._expected, self._earlier = expected, earlier

    @cached_property
    def _errors(self) -> dict[str, float]:
        arguments, reference, inputs = self._draw
        errors = reference.arithmetic_errors(arguments, inputs, self._expected)
        for name, error in errors.items():
            self._earlier[name] = min(error, self._earlier.get(name, error))
        return errors

    def ratio(
        self, tensor: Tensor, actual: torch.Tensor, wanted: torch.Tensor, tolerance: Tolerance, least: float
    ) -> tuple[float, float, float]:
        """Return the error over tolerance, with the arithmetic error or the leeway that it holds for.

        `least`: the error over the least tolerance.
        """
        arguments, reference, inputs = self._draw
        if tensor.name in self._earlier and tensor.numel > FEW:
            error = self._earlier[tensor.name]
            ratio = float(error_ratio(actual, wanted, tolerance, tensor.dtype, error))
            if ratio <= MARGIN:
                return ratio, error, 1.0
        error = self._errors.get(tensor.name, 0.0)
        ratio = float(error_ratio(actual, wanted, tolerance, tensor.dtype, error))
        if may_be_rounding(ratio, tensor, arguments):
            more = leeway(arguments, reference, inputs, tensor.name, wanted, tolerance)
            if least / more < ratio:
                return least / more, 0.0, more
        return ratio, error, 1.0


def check_inputs(inputs: Tensors, sets: Sets, index: int) -> OutputCheck:
    """Inputs that are not mutable must be bit for bit what the judge wrote."""
    arguments = sets.arguments
    for tensor in arguments.inputs:
        if not tensor.spec.mutable and not same_bits(sets.view(tensor.name)[index], inputs[tensor.name]):
            return OutputCheck(Status.INPUT_MUTATED, message("input_changed", name=tensor.name))
    return GOOD


def check_canaries(before: torch.Tensor, sets: Sets) -> OutputCheck:
    """For a buffer of one set: no byte may differ from `before` that is no element of an argument."""
    import torch

    if torch.equal(sets.outside(0, before), sets.outside(0)):
        return GOOD
    changed = before != sets.raw
    for tensor in (*sets.arguments.inputs, *sets.arguments.outputs):
        changed &= ~sets.element_mask(tensor.name)
    first = int(changed.to(dtype=before.dtype).argmax())
    return _stray(int(changed.sum()), _near(sets, first))


def check_outside(before: torch.Tensor, sets: Sets, index: int) -> OutputCheck:
    """For a buffer of many sets: no byte that `Sets.outside` returned before a pass may differ."""
    changed = int((before != sets.outside(index)).sum())
    return _stray(changed) if changed else GOOD


def _stray(count: int, nearest: str = "") -> OutputCheck:
    return OutputCheck(Status.OUT_OF_BOUNDS, message("bytes_changed_outside", count=count, nearest=nearest))


def _near(sets: Sets, byte: int) -> str:
    """Return which argument a stray write lies in, between its elements, or closest behind."""
    nearest = ""
    for tensor in (*sets.arguments.inputs, *sets.arguments.outputs):
        if sets.offset(tensor.name) <= byte:
            past = byte - sets.offset(tensor.name) - tensor.span * tensor.item_bytes
            where = f"{past} bytes past the end" if past >= 0 else "between the elements"
            nearest = f" (the first lies {where} of {tensor.name})"
    return nearest or " (before the first argument)"


def _as_written(tensor: torch.Tensor) -> torch.Tensor:
    """Booleans as the bytes they are: 2 is not `true`."""
    import torch

    return tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor


def same_bits(shared: torch.Tensor, own: torch.Tensor) -> bool:
    """Compare as integers: as numbers -0 equals 0, and NaN differs from itself."""
    import torch

    bits = integer_dtype(own.element_size())
    return torch.equal(shared.view(bits), own.view(bits))


def _regret(regret: torch.Tensor, tolerance: Tolerance) -> tuple[float, str]:
    """The worst regret over what is allowed, and which choices exceed it."""
    worst = float(regret.double().max()) if regret.numel() else 0.0
    allowed = allowed_regret(tolerance)
    if worst <= allowed:
        return worst / allowed if allowed else 0.0, ""
    return worst / allowed if allowed and worst == worst else float("inf"), describe_regret(regret, allowed)


def compared(arguments: Arguments) -> list[TensorSpec]:
    """The tensors that a case is judged by, those it leaves out not among them."""
    task = arguments.task
    judged = [spec for spec in task.tensors if spec.mutable or spec in task.outputs]
    return [spec for spec in judged if arguments.tensors[spec.name] is not None]
