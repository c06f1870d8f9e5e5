"""Compare the declared work with what the reference moves, by gradients, and computes, by what PyTorch is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.checks.tasks.soundness import Draw, Tensors, unless_declared
from arena.errors import FileError
from arena.judge.correctness.inputs import draw_inputs
from arena.judge.correctness.verify import compared
from arena.results.check import CheckItem, CheckOutcome
from arena.results.messages import message
from arena.task.definition import Arguments, Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.rules import reason_for

if TYPE_CHECKING:
    import torch

COUNTED = (0.5, 1.15)
"""declared bytes over counted ones"""
MOST_OF_ARGUMENTS = 1.5
"""declared bytes over those of all arguments; lengths that the data hold are declared by their mean"""
MOST_FLOPS = 2.0
"""declared operations over counted ones; fewer may be declared, since a reference may compute what a kernel need not"""
_DRAWS = 20
_GRADIENTS = 6


def work_items(
    task: Task, reference: Reference, cases: Sequence[Case], generator: torch.Generator
) -> Iterator[CheckItem]:
    """Yield whether declared bytes and operations are what the reference moves and computes, in small cases."""
    yield unless_declared(task, _bytes(task, reference, cases[-1], generator))
    yield unless_declared(task, _operations(task, reference, cases, generator))


def _bytes(task: Task, reference: Reference, case: Case, generator: torch.Generator) -> CheckItem:
    """Compare declared bytes with those that a call must move, counted by gradients where there are any.

    What is moved may depend on the data (lengths), and the declared least be far from what was drawn: so several
    draws are compared, and one that agrees is enough. In no case are they many more than all arguments hold.
    """
    item = _counted_bytes(task, reference, case, generator)
    if item.outcome is CheckOutcome.FAILED:
        return item
    for worked_out in (arguments(task, other) for other in task.cases):
        declared, most = worked_out.num_bytes, worked_out.argument_bytes
        if declared > MOST_OF_ARGUMENTS * most:
            held = {"declared": declared, "held": most, "case": _named(worked_out), "most": MOST_OF_ARGUMENTS}
            return CheckItem("work", CheckOutcome.FAILED, message("check_bytes_over_arguments", **held))
    return item


def _counted_bytes(task: Task, reference: Reference, case: Case, generator: torch.Generator) -> CheckItem:
    for _ in range(1 if reason_for(task.exceptions, "work") else _DRAWS):
        draw = Draw.of(reference, arguments(task, case), generator)
        declared, counted = draw.arguments.num_bytes, count_bytes(draw, generator)
        if counted is None:
            return CheckItem("work", CheckOutcome.NOT_CHECKED, message("check_bytes_uncounted"))
        share = declared / counted if counted else float("inf")
        where = _named(draw.arguments)
        if COUNTED[0] <= share <= COUNTED[1]:
            seen = f"declared {declared:.4g} bytes, counted {counted:.4g} in {where}"
            return CheckItem("work", CheckOutcome.PASSED, seen)
    low, high = COUNTED
    detail = message("check_bytes_wrong", declared=declared, counted=counted, case=where, low=low, high=high)
    return CheckItem("work", CheckOutcome.FAILED, detail)


def _named(worked_out: Arguments) -> str:
    return f"{worked_out.case.id} ({worked_out.case.label})"


def _operations(task: Task, reference: Reference, cases: Sequence[Case], generator: torch.Generator) -> CheckItem:
    """Compare declared operations with those of the reference: no more than `MOST_FLOPS` times as many in any case.

    How many there are may depend on the data, so that one of several draws is enough.
    """
    worst, seen, of_worst = -1.0, "", dict[str, object]()
    for case in cases:
        for _ in range(1 if reason_for(task.exceptions, "operations") else _DRAWS):
            draw = Draw.of(reference, arguments(task, case), generator)
            declared, counted = draw.arguments.flops, reference.count_flops(draw.arguments, draw.inputs)
            times = declared / max(counted, 1.0)
            if times <= MOST_FLOPS:
                break
        if times > worst:
            worst, where = times, _named(draw.arguments)
            seen = f"declared {declared:.4g} operations, counted {counted:.4g} in {where}"
            of_worst = {"declared": declared, "counted": counted, "case": where, "times": times}
    if worst > MOST_FLOPS:
        detail = message("check_operations_wrong", most=MOST_FLOPS, **of_worst)
        return CheckItem("operations", CheckOutcome.FAILED, detail)
    return CheckItem("operations", CheckOutcome.PASSED, f"{seen}: {worst:.2g} times as many")


def count_bytes(draw: Draw, generator: torch.Generator) -> float | None:
    """Bytes that a call has to move: elements of inputs with a gradient, integers and bools whole, what is written.

    A gradient can be zero by chance (a ReLU): it counts if it is not for one of several draws of the floating inputs,
    with the same integers. None where the reference has no gradients (integer results, or native arithmetic).
    """
    touched: dict[str, torch.Tensor] = {}
    for _ in range(_GRADIENTS):
        gradients = _gradients(draw)
        if gradients is None:
            return None
        for name, gradient in gradients.items():
            touched[name] = touched.get(name, gradient != 0) | (gradient != 0)
        again = draw_inputs(draw.arguments, draw.reference, 1, generator)
        floating = {name: again[name][0] for name, values in draw.inputs.items() if values.is_floating_point()}
        draw = Draw(draw.reference, draw.arguments, {**draw.inputs, **floating})
    moved = float(sum(int(mask.sum()) * draw.inputs[name].element_size() for name, mask in touched.items()))
    moved += sum(v.numel() * v.element_size() for v in draw.inputs.values() if not v.is_floating_point())
    for spec in compared(draw.arguments):
        answer = draw.answers[spec.name]
        written = int((answer != draw.inputs[spec.name]).sum()) if spec.mutable else answer.numel()
        moved += written * answer.element_size()
    return moved


def _gradients(draw: Draw) -> Tensors | None:
    """The gradient of the weighted sum of all results by each floating input, weights being random."""
    import torch

    leaves = {n: v.double().requires_grad_() for n, v in draw.inputs.items() if v.is_floating_point()}
    try:
        found = draw.reference(draw.arguments, {**draw.inputs, **leaves})
        results = list(found.values())
        if not all(value.requires_grad for value in results):
            return None
        # What a call leaves as it was need not be read, though the reference hands it back.
        changed = [value.detach() != draw.inputs[name] if name in leaves else 1.0 for name, value in found.items()]
        weights = [torch.rand_like(value) * where for value, where in zip(results, changed, strict=True)]
        gradients = torch.autograd.grad(results, list(leaves.values()), weights, allow_unused=True)
    except (RuntimeError, FileError):
        return None
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True)
    }
