"""A new task from captured calls: axes from sizes that vary together, and a case for each kind of call."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from arena.errors import UsageError
from arena.task.corpus.captured_calls import CallsAlike, CapturedCalls, TensorSeen
from arena.task.corpus.scaffolding import TODO, Scaffold, scaffold, unfinished
from arena.task.corpus.task_folder import DEFINITION, HELDOUT, TASKS
from arena.task.definition import FLOATING

_SEEN, _FREQUENT = 5, 3
"""the most timed cases of a split, and how many of the seen ones are the most frequent; the others are the largest"""
_LEAST = 5
"""cases of a split"""
_TIMED, _MOST_OTHERS, _SAID = 2, 10, 4
_LEAST_DOMAIN = 4 * _LEAST
"""so that there are as many sizes of an axis"""
_FILLS = {"bool": "{bernoulli: 0.5}"}
_OUTPUT = "out"
_WIDTH = 118
_SCALARS = {float: "float32", int: "int32", bool: "bool"}
"""the widest first"""
_GREATEST_INT32 = 2**31 - 1
Sizes = tuple[int | None, ...]
"""of one dimension in each kind of call; None where the tensor was left out"""


@dataclass(frozen=True)
class _Tensor:
    name: str
    argument: str
    """its name in the calls, where an item of a list has a dot"""
    shape: tuple[str, ...]
    dtype: str
    optional: bool
    changed: bool
    strided: str
    """strides and offsets that were seen, where some tensor was not dense"""


def task_from_calls(calls: CapturedCalls, task_type: str, suite: str, name: str, root: Path = TASKS) -> Scaffold:
    """Write a new task with the arguments, results and sizes of captured calls, and TODO for what they do not say.

    Raises `UsageError` as `scaffold` does, and where the calls pass no tensor.
    """
    drawn = _Definition(*_of_one_rank(calls))
    made = scaffold(task_type, suite, name, root)
    files = {DEFINITION: drawn.text(name), **drawn.cases(), **drawn.code(name, made.folder)}
    for file, text in files.items():
        (made.folder / file).write_text(text, encoding="utf-8")
    return Scaffold(made.folder, unfinished(made.folder))


class _Definition:
    def __init__(self, calls: CapturedCalls, left_out: int) -> None:
        self._calls, self._left_out_calls = calls, left_out
        self._axes: dict[Sizes, str] = {}
        self._dtypes: dict[tuple[str | None, ...], str] = {}
        given = [self._tensor(name, seen) for name, seen in calls.tensors()]
        returned = [self._tensor(name, seen) for name, seen in self._results()]
        self._outputs = returned or [tensor for tensor in given if tensor.changed]
        self._inputs = [tensor for tensor in given if tensor not in self._outputs]
        if not self._inputs or not self._outputs:
            raise UsageError(f"the calls of {calls.function} pass no tensor, or return and change none")
        if not self._axes:
            raise UsageError(f"all sizes in the calls of {calls.function} are 1: capture larger ones")
        self._scalars = {
            name.replace(".", "_"): [value for value in values if isinstance(value, bool | int | float)]
            for name, values in calls.scalars()
            if all(isinstance(value, bool | int | float) for value in values)
        }

    def _results(self) -> Iterator[tuple[str, list[TensorSeen | None]]]:
        """Yield the tensors that every call returned."""
        most = max(len(alike.results) for alike in self._calls.alike)
        for number in range(most):
            found = [alike.results[number] if number < len(alike.results) else None for alike in self._calls.alike]
            seen = [value if isinstance(value, TensorSeen) else None for value in found]
            if any(seen):
                yield _OUTPUT if most == 1 else f"{_OUTPUT}{number}", seen

    def _tensor(self, name: str, seen: Sequence[TensorSeen | None]) -> _Tensor:
        plain = name.replace(".", "_")
        rank = max(len(one.shape) for one in seen if one)
        sizes = [
            tuple(one.shape[dim] if one and len(one.shape) == rank else None for one in seen) for dim in range(rank)
        ]
        shape = tuple(self._axis(f"{plain}_{dim}", of_dim) for dim, of_dim in enumerate(sizes))
        strides = dict.fromkeys((one.strides, one.offset) for one in seen if one and (one.strides or one.offset))
        changed = any(one.mutated for one in seen if one)
        told = [f"{f'strides {list(of)}' if of else 'no strides'} from {offset} on" for of, offset in strides][:_SAID]
        said = f"{name} had {', '.join(told)}; it is dense here" if told else ""
        return _Tensor(
            plain,
            name,
            shape,
            self._dtype(tuple(one.dtype if one else None for one in seen)),
            None in seen,
            changed,
            said,
        )

    def _axis(self, name: str, sizes: Sizes) -> str:
        """Return the axis of these sizes, one that always agreed where both are known; 1 where all are."""
        if set(sizes) == {1}:
            return "1"
        for known, axis in self._axes.items():
            both = [(a, b) for a, b in zip(known, sizes, strict=True) if a is not None and b is not None]
            if both and all(a == b for a, b in both):
                merged = tuple(a if a is not None else b for a, b in zip(known, sizes, strict=True))
                self._axes = {merged if key == known else key: value for key, value in self._axes.items()}
                return axis
        self._axes[sizes] = name
        return name

    def _dtype(self, dtypes: tuple[str | None, ...]) -> str:
        """Return a dtype, or `$` and the variable that it is a value of: numbers that are floating may be of others."""
        known = {dtype for dtype in dtypes if dtype}
        if len(known) == 1 and not known <= set(FLOATING):
            return known.pop()
        for others, variable in self._dtypes.items():
            if all(a == b for a, b in zip(others, dtypes, strict=True) if a and b):
                return f"${variable}"
        self._dtypes[dtypes] = "dtype" if not self._dtypes else f"dtype{len(self._dtypes) + 1}"
        return f"${self._dtypes[dtypes]}"

    def text(self, name: str) -> str:
        """Return task.yaml."""
        function = self._calls.function
        lines = [
            "# Every line that says TODO wants an answer; `arena tasks check` refuses the task while one is left.",
            f"name: {name}",
            f"# {TODO}: say exactly what is computed: the formula, the arithmetic, what happens at the edges.",
            "summary: >-",
            f"  {TODO}. What {function} computes.",
            f"entry: {name}",
            f"# {TODO}: the file and commit that define it.",
            f"source: {json.dumps(f'{TODO}: {function}, {self._calls.calls} calls on {self._calls.device}')}",
            f"# {TODO}: names, and the range on which a kernel must be right: here twice the greatest size. Sizes that",
            "# always agreed share an axis.",
            "axes:",
            *(
                f"  {axis}: {{doc: {TODO}, domain: [{min(1, *_known(sizes))}, {_domain(sizes)}]}}"
                for sizes, axis in self._axes.items()
            ),
            "dtypes:",
            *(f"  {variable}: [{', '.join(_distinct(dtypes))}]" for dtypes, variable in self._dtypes.items()),
            f"# {TODO}: fills with which every input makes a difference; `mutable: true` for what a call changes.",
            "inputs:",
            *(self._input(tensor) for tensor in self._inputs),
            *(
                f"  {scalar}: {{scalar: {_scalar_dtype(values)}, value: {_yaml(values[0])}}}"
                for scalar, values in self._scalars.items()
            ),
            *self._left_out(),
            "outputs:",
            *(self._output(tensor) for tensor in self._outputs),
            f"# {TODO}: the operations of one call; what a call returned, or else what it changed, is an output.",
            "work: {flops: 1}",
        ]
        return "\n".join(lines) + "\n"

    def _input(self, tensor: _Tensor) -> str:
        fill = _FILLS.get(tensor.dtype, "normal" if tensor.dtype.startswith("$") else "{integers: [0, 2]}")
        extra = ", optional: true" if tensor.optional else ""
        extra += ", mutable: true" if tensor.changed else ""
        note = f"  # {TODO}: {tensor.strided}\n" if tensor.strided else ""
        shape = ", ".join(tensor.shape)
        return f"{note}  {tensor.name}: {{shape: [{shape}], dtype: {tensor.dtype}, fill: {fill}{extra}}}"

    def _output(self, tensor: _Tensor) -> str:
        return f"  {tensor.name}: {{shape: [{', '.join(tensor.shape)}], dtype: {tensor.dtype}}}"

    def _left_out(self) -> Iterator[str]:
        kept = {*self._scalars, *(tensor.name for tensor in (*self._inputs, *self._outputs))}
        names = dict.fromkeys(name for alike in self._calls.alike for name in alike.arguments)
        left = [name for name in names if name.replace(".", "_") not in kept]
        if left:
            yield f"# {TODO}: neither tensors nor numbers, so left out: {', '.join(left)}"

    def cases(self) -> dict[str, str]:
        """Return seen.yaml with the most frequent kinds of call, and heldout.yaml with the others."""
        counts: dict[str, int] = {}
        for number, alike in enumerate(self._calls.alike):
            text = json.dumps(self._case(number))
            counts[text] = counts.get(text, 0) + alike.calls
        ordered = sorted(counts.items(), key=lambda item: -item[1])
        share = {text: f"{calls} of {self._calls.calls} calls" for text, calls in ordered}
        texts = [text for text, _ in ordered]
        edge = {"kind": "edge", **dict.fromkeys(self._axes.values(), 1)} | self._firsts()
        largest = sorted(texts, key=self._elements, reverse=True)
        first = list(dict.fromkeys([*texts[:_FREQUENT], *largest]))[:_SEEN]
        rest = [text for text in dict.fromkeys([*largest[: _SEEN + _TIMED], *texts]) if text not in first]
        timed = {*set(first).intersection(largest[:_SEEN]), *rest[:_TIMED]}
        said = {text: (_served(counts[text]) if text in timed else {}) | {"note": share[text]} for text in texts}
        cases = [{**json.loads(text), **said[text]} for text in first]
        others = [{"kind": "production", **json.loads(text), **said[text]} for text in rest[:_MOST_OTHERS]]
        others.insert(0, edge)
        new = self._sizes_without_a_call(json.loads(texts[0]))
        cases += islice(new, max(0, _LEAST - len(cases)))
        others += [{"kind": "scale_down", **case} for case in islice(new, max(0, _LEAST - len(others)))]
        seen = [_line(case) for case in cases]
        if self._left_out_calls:
            seen.insert(0, f"# {TODO}: {self._left_out_calls} calls have other numbers of dimensions: left out.\n")
        asked = f"# {TODO}: small ones for the CPU platform; sizes of 20 µs or more are `timed: true`, at most five.\n"
        kinds = f"# {TODO}: cases of more kinds, as docs/contribute/new-task.md has them.\n"
        return {"seen.yaml": asked + "".join(seen), HELDOUT: kinds + "".join(map(_line, others))}

    def _elements(self, text: str) -> int:
        """Return how many elements the inputs of a case have together."""
        case = json.loads(text)
        shapes = [[case.get(size, 1) for size in tensor.shape] for tensor in self._inputs]
        return sum(math.prod(shape) for shape in shapes)

    def _sizes_without_a_call(self, case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield cases that differ from all others along the first axis, the least sizes first."""
        sizes, axis = next(iter(self._axes.items()))
        for size in set(range(2, _domain(sizes) + 1)) - set(sizes):
            yield {**case, axis: size, "note": f"{TODO}: no call had it"}

    def _firsts(self) -> dict[str, str]:
        return {variable: _distinct(dtypes)[0] for dtypes, variable in self._dtypes.items()}

    def _case(self, number: int) -> dict[str, Any]:
        alike = self._calls.alike[number]
        case: dict[str, Any] = {axis: _size(sizes, number) for sizes, axis in self._axes.items()}
        case |= {name: dtypes[number] or _distinct(dtypes)[0] for dtypes, name in self._dtypes.items()}
        case |= {name: values[number] for name, values in self._scalars.items() if values[number] != values[0]}
        given = {name for name, value in alike.arguments.items() if isinstance(value, TensorSeen)}
        absent = [tensor.name for tensor in self._inputs if tensor.optional and tensor.argument not in given]
        return case | ({"omit": absent} if absent else {})

    def code(self, name: str, folder: Path) -> dict[str, str]:
        """Return reference.py, and the kernel's file where the task has one, without their bodies."""
        names = [*(tensor.name for tensor in self._inputs), *self._scalars]
        reference = (
            f'"""{TODO}: what is computed, and its source."""\n\n\n'
            f'def reference({", ".join(names)}):\n    """{TODO}."""\n    raise NotImplementedError\n'
        )
        files = {"reference.py": reference}
        if (folder / "kernel.py").is_file():
            given = ", ".join([*names, *(tensor.name for tensor in self._outputs)])
            stub = f'"""{TODO}: how the work is split."""\n\n\ndef {name}({given}):\n    raise NotImplementedError\n'
            files["kernel.py"] = stub
        return files


def _served(calls: int) -> dict[str, Any]:
    return {"timed": True, "calls": calls}


def _of_one_rank(calls: CapturedCalls) -> tuple[CapturedCalls, int]:
    """Return the kinds of call whose tensors have as many dimensions as in the first; and how many calls are left."""
    first = _ranks(calls.alike[0])
    alike = tuple(
        one for one in calls.alike if all(first.get(name, rank) == rank for name, rank in _ranks(one).items())
    )
    kept = structs.replace(calls, alike=alike)
    return kept, calls.calls - kept.calls


def _ranks(alike: CallsAlike) -> dict[str, int]:
    return {name: len(value.shape) for name, value in alike.arguments.items() if isinstance(value, TensorSeen)}


def _scalar_dtype(values: Sequence[bool | int | float]) -> str:
    if all(isinstance(value, int) for value in values) and max(map(abs, values)) > _GREATEST_INT32:
        return "int64"
    return next(name for kind, name in _SCALARS.items() if any(type(value) is kind for value in values))


def _known(sizes: Sizes) -> list[int]:
    return [size for size in sizes if size is not None]


def _greatest(sizes: Sizes) -> int:
    return max(_known(sizes))


def _size(sizes: Sizes, number: int) -> int:
    """Return a size in one kind of call; of a tensor that it leaves out the greatest."""
    size = sizes[number]
    return _greatest(sizes) if size is None else size


def _domain(sizes: Sizes) -> int:
    return max(_LEAST_DOMAIN, 2 * _greatest(sizes))


def _distinct(dtypes: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(dtype for dtype in dtypes if dtype))


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()


def _line(case: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(dict(case), default_flow_style=True, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return "- " + text.strip().replace("\n", "\n  ") + "\n"
