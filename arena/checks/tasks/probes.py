"""Fault probes: what kernels with common faults would leave in memory, and which held-out cases reject it.

No kernel is built. A probe writes the reference's answers with one fault into the buffers of a case, and the judge's
own checks of a call decide. Used by `tools/fault_probes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.checks.tasks.probe_rules import (
    VECTOR_BYTES,
    always,
    declared_empty,
    has_vectors,
    if_dtypes,
    if_hip,
    if_ragged,
    if_shaped,
    if_strided,
    if_unaligned,
    int32_case,
    is_data,
    is_offsets,
    ragged,
)
from arena.checks.tasks.soundness import Draw
from arena.errors import FileError
from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import secret_draws
from arena.judge.correctness.stage import check_call, prepare_call
from arena.judge.correctness.verify import check_canaries, compared
from arena.judge.selection import emulation_work
from arena.platforms.cpu.platform import CpuPlatform
from arena.results.verdict import Status
from arena.task.definition import DTYPE_BYTES, Arguments, Case, Task, Tensor, arguments, contiguous
from arena.task.expression import Expression, ExpressionError, Number
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

MOST_WORK = 3e7
"""operations plus bytes of a case that is tried"""
_BLOCK, _LANES = 16, 32
_DRAWS = 3
Answers = Mapping[str, "torch.Tensor"]
Probe = Callable[["ProbedCall"], Iterator["Answers | None"]]


@dataclass(frozen=True)
class ProbedCall:
    """One draw of a case in the judge's buffer: inputs are written, outputs hold poison."""

    task: Task
    draw: Draw
    sets: Sets

    @property
    def arguments(self) -> Arguments:
        """The sizes of the case."""
        return self.draw.arguments

    def answers_to(self, changed: Mapping[str, torch.Tensor]) -> Answers:
        """Return the reference's answers where a kernel takes `changed` for some of the inputs."""
        return Draw(self.draw.reference, self.arguments, {**self.draw.inputs, **changed}).answers

    def store(self, answers: Answers, limits: Mapping[str, tuple[int | None, ...]] | None = None) -> None:
        """Write answers; of a tensor in `limits` only the elements before the limit of every dimension."""
        for name, values in answers.items():
            part = tuple(slice(None, limit) for limit in (limits or {}).get(name, ()))
            self.sets.view(name)[0][part].copy_(values[part])

    def in_memory(self, tensor: Tensor) -> tuple[torch.Tensor, int]:
        """Return the whole buffer as elements of the tensor's dtype, and the place of its first one."""
        flat = self.sets.raw.view(torch_dtype(tensor.dtype))
        return flat, self.sets.offset(tensor.name) // tensor.item_bytes


def probe_task(task: Task, reference: Reference, generator: torch.Generator) -> dict[str, str]:
    """Return for each fault the held-out case that rejects it, an empty string for none, or why it cannot occur.

    Reasons begin with a dash.
    """
    cases = sorted(task.heldout, key=lambda case: emulation_work(arguments(task, case)))
    small = [case for case in cases if emulation_work(arguments(task, case)) <= MOST_WORK] or cases[:2]
    found = {}
    for fault, (applies, probe) in PROBES.items():
        reason = applies(task)
        found[fault] = f"- {reason}" if reason else _first_that_sees(task, small, reference, probe, generator)
    found["int32 offset"] = int32_case(task)
    return {fault: found[fault] for fault in FAULTS}


def _first_that_sees(
    task: Task, cases: list[Case], reference: Reference, probe: Probe, generator: torch.Generator
) -> str:
    drawn = False
    for case in cases:
        for _ in range(_DRAWS):
            rejected = rejects(task, arguments(task, case), reference, probe, generator)
            if rejected:
                return case.id
            drawn = drawn or rejected is not None
    if probe is _no_empty_row and not drawn and not any(declared_empty(task, spec) for spec in ragged(task)):
        return "- make_inputs draws no empty row"
    return ""


def rejects(
    task: Task, worked_out: Arguments, reference: Reference, probe: Probe, generator: torch.Generator
) -> bool | None:
    """Return whether the judge rejects what a probe leaves of one draw; None where the fault does not show in it.

    A probe yields at most once: None where it has written itself, else the answers to be stored.
    """
    draw = Draw.of(reference, worked_out, generator)
    sets = Sets(CpuPlatform(), worked_out, 1)
    try:
        before = prepare_call(sets, draw.inputs)
        call = ProbedCall(task, draw, sets)
        try:
            for answers in probe(call):
                if answers is not None:
                    call.store(answers)
                canaries, (secret,) = check_canaries(before, sets), secret_draws(1)
                found = check_call(canaries, sets, draw.inputs, reference, None, secret)
                return found.status is not Status.PASSED
        except FileError:
            return True  # the reference cannot compute with what the faulty kernel reads: nor can that
        return None
    finally:
        sets.close()


def _clipped(call: ProbedCall, limits: Mapping[str, int]) -> Iterator[Answers | None]:
    """A kernel that handles only part of some axes: the rest of inputs counts as 0, and of outputs is not written."""
    inputs, written = {}, {}
    for spec in call.task.tensors:
        tensor = call.arguments.tensors[spec.name]
        if tensor is None:
            continue
        ends = tuple(_end(size, call.arguments.names, limits) for size in spec.shape)
        if any(end is not None for end in ends):
            written[spec.name] = ends
            if spec.name in call.draw.inputs and is_data(tensor):
                part = tuple(slice(None, end) for end in ends)
                inputs[spec.name] = call.draw.inputs[spec.name].new_zeros(tensor.shape)
                inputs[spec.name][part] = call.draw.inputs[spec.name][part]
    if written:
        call.store(call.answers_to(inputs), written)
        yield None


def _end(size: Expression, names: Mapping[str, Number], limits: Mapping[str, int]) -> int | None:
    """Return the extent that a dimension has with other sizes, if that is less."""
    try:
        end = size.integer({**names, **limits})
    except ExpressionError:
        return None
    return end if 0 <= end < size.integer(names) else None


def _hard_coded(call: ProbedCall) -> Iterator[Answers | None]:
    limits = {}
    for axis in call.task.axes:
        size = int(call.arguments.names[axis.name])
        seen = {int(case.values[axis.name]) for case in call.task.seen}
        smaller = [one for one in seen if one < size]
        if size not in seen and smaller:
            limits[axis.name] = max(smaller)
    yield from _clipped(call, limits)


def _power_of_two(call: ProbedCall) -> Iterator[Answers | None]:
    sizes = {axis.name: int(call.arguments.names[axis.name]) for axis in call.task.axes}
    yield from _clipped(
        call, {n: 1 << (size.bit_length() - 1) for n, size in sizes.items() if size > 2 and size & (size - 1)}
    )


def _dropped_mask(call: ProbedCall) -> Iterator[Answers | None]:
    """Outputs are stored in whole blocks: the last one reaches past the end of the tensor."""
    stray = []
    for spec in compared(call.arguments):
        tensor = call.arguments.tensors[spec.name]
        if tensor is not None and tensor.numel and any(size % _BLOCK for size in tensor.shape):
            flat, first = call.in_memory(tensor)
            stray.append(flat[first + tensor.span :][:_BLOCK])
    if stray:
        call.store(call.draw.answers)
        for piece in stray:
            piece.zero_()
        yield None


def _rows(tensor: Tensor) -> torch.Tensor:
    """Return where each row begins, in elements from the first one."""
    import torch

    starts = torch.zeros(1, dtype=torch.int64)
    for size, stride in zip(tensor.shape[:-1], tensor.strides[:-1], strict=True):
        starts = (starts[:, None] + stride * torch.arange(size)).flatten()
    return starts


def _alignment(call: ProbedCall) -> Iterator[Answers | None]:
    """Rows are read from the last 16-byte boundary before them."""
    import torch

    changed = {}
    for tensor in call.arguments.inputs:
        if not tensor.numel or not has_vectors(tensor):
            continue
        flat, first = call.in_memory(tensor)
        step = VECTOR_BYTES // tensor.item_bytes
        starts = _rows(tensor) + first
        if bool((starts % step != 0).any()):
            places = (starts - starts % step)[:, None] + torch.arange(tensor.shape[-1])
            changed[tensor.name] = flat[places].reshape(tensor.shape)
    if changed:
        yield call.answers_to(changed)


def _contiguity(call: ProbedCall) -> Iterator[Answers | None]:
    """Tensors are read and written as if their elements lay side by side."""
    changed = {}
    for tensor in call.arguments.inputs:
        if tensor.span != tensor.numel or tensor.strides != contiguous(tensor.shape):
            flat, first = call.in_memory(tensor)
            changed[tensor.name] = flat[first : first + tensor.numel].reshape(tensor.shape).clone()
    outputs = [tensor for tensor in call.arguments.outputs if tensor.strides != contiguous(tensor.shape)]
    if changed or outputs:
        answers = dict(call.answers_to(changed))
        for tensor in outputs:
            flat, first = call.in_memory(tensor)
            flat[first : first + tensor.numel] = answers.pop(tensor.name).flatten()
        call.store(answers)
        yield None


def _one_dtype(call: ProbedCall) -> Iterator[Answers | None]:
    """Elements are read and written in the dtypes of the first seen case."""
    others = {}
    for tensor in (*call.arguments.inputs, *call.arguments.outputs):
        variable = tensor.spec.dtype.removeprefix("$")
        if variable != tensor.spec.dtype and tensor.numel:
            first = call.task.format(str(call.task.seen[0].values[variable]))
            if first != tensor.dtype:
                others[tensor.name] = first
    if others:
        read = {n: _as_if(v, others[n]).to(v.dtype) for n, v in call.draw.inputs.items() if n in others}
        answers = call.answers_to(read)
        own = {name: values.dtype for name, values in answers.items()}
        yield {
            n: _as_if(v.to(torch_dtype(others[n])), str(own[n]).removeprefix("torch.")) if n in others else v
            for n, v in answers.items()
        }


def _as_if(values: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return what the bytes of a tensor are as another dtype: the first of them, or all of them repeatedly."""
    import torch

    size = values.numel() * DTYPE_BYTES[dtype]
    held = values.contiguous().flatten().view(torch.uint8)
    return held.repeat(-(-size // max(1, held.numel())))[:size].view(torch_dtype(dtype)).reshape(values.shape)


def _batch_1(call: ProbedCall) -> Iterator[Answers | None]:
    """Only the first entry of the leading dimension is written, or read where every output is one number."""
    written: dict[str, tuple[int | None, ...]] = {}
    for spec in compared(call.arguments):
        tensor = call.arguments.tensors[spec.name]
        if tensor is not None and tensor.shape and tensor.shape[0] > 1:
            written[spec.name] = (1,)
    if written:
        call.store(call.draw.answers, written)
        yield None
    elif not if_shaped(call.task):
        return
    else:
        first = {}
        for tensor in call.arguments.inputs:
            if is_data(tensor) and tensor.shape and tensor.shape[0] > 1:
                first[tensor.name] = call.draw.inputs[tensor.name].clone()
                first[tensor.name][1:] = 0
        if first:
            yield call.answers_to(first)


def _no_empty_row(call: ProbedCall) -> Iterator[Answers | None]:
    """Every row is taken to have an element: counts are at least 1, and offsets ascend."""
    import torch

    changed = {}
    for spec in ragged(call.task):
        values, tensor = call.draw.inputs.get(spec.name), call.arguments.tensors[spec.name]
        if values is None or tensor is None:
            continue
        if is_offsets(tensor.name) and bool((values[..., 1:] <= values[..., :-1]).any()):
            steps = torch.arange(values.shape[-1], dtype=values.dtype)
            apart = (values - steps).cummax(dim=-1).values + steps
            changed[tensor.name] = torch.minimum(apart, values[..., -1:])
        elif not is_offsets(tensor.name) and bool((values == 0).any()):
            changed[tensor.name] = values.clamp(min=1)
    if changed:
        yield call.answers_to(changed)


def _wave_size(call: ProbedCall) -> Iterator[Answers | None]:
    """Half of the lanes are lost: of 64 neighbours along a row the second 32 count as 0."""
    import torch

    changed = {}
    for tensor in call.arguments.inputs:
        if is_data(tensor) and tensor.shape and tensor.shape[-1] > _LANES:
            lost = torch.arange(tensor.shape[-1]) // _LANES % 2 == 1
            values = call.draw.inputs[tensor.name]
            changed[tensor.name] = torch.where(lost, values.new_zeros(()), values)
    if changed:
        yield call.answers_to(changed)


PROBES: dict[str, tuple[Callable[[Task], str], Probe]] = {
    "hard-coded size": (always, _hard_coded),
    "dropped mask": (if_shaped, _dropped_mask),
    "power of two": (always, _power_of_two),
    "alignment": (if_unaligned, _alignment),
    "contiguity": (if_strided, _contiguity),
    "one dtype": (if_dtypes, _one_dtype),
    "batch 1": (always, _batch_1),
    "no empty row": (if_ragged, _no_empty_row),
    "wave size": (if_hip, _wave_size),
}
FAULTS = (*list(PROBES)[:5], "int32 offset", *list(PROBES)[5:])
