"""From a validated document to a `Task`: the checks that a schema cannot make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.corpus.memory import memory_problem
from arena.corpus.strict_yaml import Document
from arena.errors import FileError
from arena.model.expression import Expression, ExpressionError, Number
from arena.model.fp8 import FP8
from arena.model.record import Split
from arena.model.task import (
    MOST_HELD_BYTES,
    Arithmetic,
    Axis,
    Case,
    Fill,
    InputSpec,
    OutputComparison,
    Precision,
    ScalarSpec,
    Task,
    TaskType,
    TensorSpec,
    Tolerance,
    ViewOf,
    Work,
    arguments,
)

CASE_KEYS = frozenset({"kind", "note", "omit", "timed"})
_CODES = frozenset({"int8", "uint8", "int16", "int32", FP8, "float8_e4m3fn", "float8_e5m2"})
_Places = list[tuple[list[str | int], Expression]]


@dataclass(frozen=True)
class Identity:
    """What a task's place on disk says of it."""

    path: Path
    content_hash: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """Task type, suite and name."""
        task_type, suite, name = self.path.parts[-3:]
        return task_type, suite, name


def build_task(document: Document, seen: Document, heldout: Document, identity: Identity) -> Task:
    """Turn three validated documents into a task; raises `FileError` for the first thing that does not fit."""
    data = document.data
    task_type, suite, name = identity.parts
    if data["name"] != name:
        raise document.error(["name"], f"must be the folder's name, {name}")
    axes = tuple(_axis(document, name, spec) for name, spec in data["axes"].items())
    dtypes = {name: tuple(choices) for name, choices in data.get("dtypes", {}).items()}
    inputs = tuple(_input(document, name, spec) for name, spec in data["inputs"].items())
    texts = enumerate(data.get("constraints", []))
    task = Task(
        id="/".join(identity.parts),
        task_type=TaskType(task_type),
        suite=suite,
        name=data["name"],
        summary=data["summary"].strip(),
        entry=data["entry"],
        axes=axes,
        dtypes=dtypes,
        constraints=tuple(_expression(document, ["constraints", i], text) for i, text in texts),
        inputs=inputs,
        outputs=tuple(_tensor(document, ("outputs", name), spec) for name, spec in data["outputs"].items()),
        work=_work(document, data["work"]),
        seen=_cases(seen, Split.SEEN, axes),
        heldout=_cases(heldout, Split.HELDOUT, axes),
        path=identity.path,
        definition=document.path.parent,
        content_hash=identity.content_hash,
        source=data.get("source", ""),
        family=data.get("family", data["name"]),
        latency_bound=data.get("latency_bound", ""),
        least_triton=data.get("least_triton", ""),
        precision=Precision(data.get("precision", "float64")),
        arithmetic=Arithmetic(data.get("arithmetic", "inputs")),
        exceptions=data.get("exceptions", {}),
        equivalent_mutants=data.get("equivalent_mutants", {}),
    )
    _check_names(document, task)
    _check_expressions(document, task)
    for case_document, cases in ((seen, task.seen), (heldout, task.heldout)):
        for index, case in enumerate(cases):
            names = _check_case(case_document, index, task, case)
            _check_work(document, task, case, names)
    _check_distinct(seen, heldout, task)
    return task


def _axis(document: Document, name: str, spec: dict[str, Any]) -> Axis:
    values = tuple(spec.get("values", ()))
    low, high = spec.get("domain", (min(values, default=0), max(values, default=0)))
    if low > high:
        raise document.error(["axes", name, "domain"], f"is empty: {low} is above {high}")
    axis = Axis(name, spec["doc"], low, high, spec.get("multiple_of", 1), values, spec.get("default"))
    if axis.default is not None and not axis.admits(axis.default):
        raise document.error(["axes", name, "default"], f"{axis.default} is outside the domain")
    return axis


def _input(document: Document, name: str, spec: dict[str, Any]) -> InputSpec:
    if "scalar" in spec:
        if not _is_scalar(spec["value"], spec["scalar"]):
            raise document.error(["inputs", name, "value"], f"{spec['value']!r} is not a {spec['scalar']}")
        return ScalarSpec(name, spec["scalar"], spec["value"], spec.get("doc", ""))
    return _tensor(document, ("inputs", name), spec)


def _tensor(document: Document, place: tuple[str, str], spec: dict[str, Any]) -> TensorSpec:
    def expressions(key: str) -> tuple[Expression, ...]:
        return tuple(_expression(document, [*place, key, i], text) for i, text in enumerate(spec.get(key, [])))

    strides = expressions("strides")
    shape = expressions("shape")
    if strides and len(strides) != len(shape):
        raise document.error([*place, "strides"], f"{len(strides)} strides for {len(shape)} dimensions")
    compare = spec.get("compare")
    if compare is not None and place[0] == "inputs" and not spec.get("mutable"):
        raise document.error([*place, "compare"], "only a mutable input is compared")
    return TensorSpec(
        name=place[1],
        shape=shape,
        dtype=spec["dtype"],
        doc=spec.get("doc", ""),
        strides=strides,
        offset=_expression(document, [*place, "offset"], spec["offset"]) if "offset" in spec else None,
        view_of=_view_of(document, [*place, "view_of"], spec["view_of"]) if "view_of" in spec else None,
        fill=_fill(document, [*place, "fill"], spec["fill"]) if "fill" in spec else None,
        mutable=spec.get("mutable", False),
        optional=spec.get("optional", False),
        tolerance=_tolerance(compare) if compare is not None else None,
    )


def _view_of(document: Document, place: list[str | int], spec: dict[str, Any]) -> ViewOf:
    return ViewOf(spec["input"], _expression(document, [*place, "when"], spec["when"]) if "when" in spec else None)


def _fill(document: Document, place: list[str | int], spec: str | dict[str, Any]) -> Fill:
    if isinstance(spec, str):
        return Fill(spec)
    ((kind, value),) = spec.items()
    if isinstance(value, list):
        value = dict(zip(("mean", "std") if kind in ("normal", "normal_even") else ("low", "high"), value, strict=True))
    elif not isinstance(value, dict):
        value = {"value": value}
    arguments: dict[str, Expression | str] = {}
    for name, text in value.items():
        is_name = kind == "addresses" and name == "of"
        arguments[name] = text if is_name else _expression(document, [*place, kind], text)
    return Fill(kind, arguments)


def _tolerance(spec: str | dict[str, Any]) -> Tolerance:
    if isinstance(spec, str):
        return Tolerance(OutputComparison(spec))
    ((comparison, bounds),) = spec.items()
    return Tolerance(OutputComparison(comparison), bounds.get("atol"), bounds.get("rtol"))


def _work(document: Document, spec: dict[str, Any]) -> Work:
    num_bytes = _expression(document, ["work", "bytes"], spec["bytes"]) if "bytes" in spec else None
    return Work(_expression(document, ["work", "flops"], spec["flops"]), num_bytes, spec.get("format", ""))


def _expression(document: Document, place: list[str | int], text: object) -> Expression:
    try:
        return Expression(str(text))
    except ExpressionError as problem:
        raise document.error(place, str(problem)) from None


def _cases(document: Document, split: Split, axes: tuple[Axis, ...]) -> tuple[Case, ...]:
    defaults = {axis.name: axis.default for axis in axes if axis.default is not None}
    cases = []
    for index, item in enumerate(document.data):
        if split is Split.HELDOUT and "kind" not in item:
            raise document.error([index], "`kind` is missing: a held-out case says in which way it differs")
        values = {name: value for name, value in item.items() if name not in CASE_KEYS}
        cases.append(
            Case(
                id=f"{split}-{index + 1:02d}",
                split=split,
                kind=item.get("kind", ""),
                values=values | {name: size for name, size in defaults.items() if name not in values},
                omit=frozenset(item.get("omit", ())),
                note=item.get("note", ""),
                timed=item.get("timed", False),
                implied=frozenset(defaults.keys() - values),
            )
        )
    return tuple(cases)


def _check_names(document: Document, task: Task) -> None:
    """A name means one thing, and every `$dtype` and tensor that is referred to is declared."""
    arguments = {spec.name for spec in (*task.inputs, *task.outputs)}
    sizes = {axis.name for axis in task.axes}
    for section, names, others in (
        ("axes", sizes, arguments | CASE_KEYS),
        ("dtypes", set(task.dtypes), arguments | sizes | CASE_KEYS),
        ("outputs", {spec.name for spec in task.outputs}, {spec.name for spec in task.inputs}),
    ):
        for clash in sorted(names & others):
            raise document.error([section, clash], "is the name of something else already")
    if not task.outputs and not any(spec.mutable for spec in task.inputs if isinstance(spec, TensorSpec)):
        raise document.error(["outputs"], "nothing to check: no output and no mutable input")
    if task.work.number_format.startswith("$") and task.work.number_format[1:] not in task.dtypes:
        raise document.error(["work", "format"], f"{task.work.number_format} is not declared under `dtypes`")
    for spec in task.tensors:
        _check_tensor(document, task, spec)


def _check_tensor(document: Document, task: Task, spec: TensorSpec) -> None:
    side = "outputs" if spec in task.outputs else "inputs"
    if spec.dtype.startswith("$") and spec.dtype[1:] not in task.dtypes:
        raise document.error([side, spec.name, "dtype"], f"{spec.dtype} is not declared under `dtypes`")
    if spec.tolerance is not None and spec.tolerance.comparison is OutputComparison.QUANTIZED:
        choices = task.dtypes[spec.dtype[1:]] if spec.dtype.startswith("$") else (spec.dtype,)
        for dtype in sorted(set(choices) - _CODES):
            raise document.error([side, spec.name, "compare"], f"{dtype} has no code steps; expected integers or fp8")
    view = spec.view_of
    if view is not None:
        other = next((o for o in task.inputs if o.name == view.input and isinstance(o, TensorSpec)), None)
        if other is None or other.mutable or spec.mutable or other.view_of or other.dtype != spec.dtype:
            said = f"`{view.input}` is not an input tensor of the same dtype that has memory of its own"
            raise document.error([side, spec.name, "view_of"], f"{said}; neither of both may be mutable")
    of = spec.fill.arguments.get("of") if spec.fill is not None else None
    if of is not None and of not in {other.name for other in task.tensors}:
        raise document.error([side, spec.name, "fill"], f"`{of}` is not a tensor of this task")


def _check_expressions(document: Document, task: Task) -> None:
    """Every name in every expression must be declared."""
    scalars = {spec.name for spec in task.inputs if isinstance(spec, ScalarSpec)}
    known = {axis.name for axis in task.axes} | scalars | {f"{name}_bytes" for name in task.dtypes}
    places: _Places = [(["constraints", i], expression) for i, expression in enumerate(task.constraints)]
    places.append((["work", "flops"], task.work.flops))
    if task.work.bytes is not None:
        places.append((["work", "bytes"], task.work.bytes))
    for spec in task.tensors:
        places += _places(spec, "outputs" if spec in task.outputs else "inputs")
    for place, expression in places:
        for name in sorted(expression.names - known):
            raise document.error(place, f"`{name}` is not an axis, a scalar or `<dtype>_bytes`")


def _places(spec: TensorSpec, side: str) -> _Places:
    places: _Places = [([side, spec.name, "shape", i], size) for i, size in enumerate(spec.shape)]
    places += [([side, spec.name, "strides", i], step) for i, step in enumerate(spec.strides)]
    if spec.offset is not None:
        places.append(([side, spec.name, "offset"], spec.offset))
    if spec.view_of is not None and spec.view_of.when is not None:
        places.append(([side, spec.name, "view_of", "when"], spec.view_of.when))
    if spec.fill is not None:
        arguments = spec.fill.arguments.values()
        places += [([side, spec.name, "fill"], text) for text in arguments if isinstance(text, Expression)]
    return places


def _check_case(document: Document, index: int, task: Task, case: Case) -> Mapping[str, Number]:
    """Return the sizes of a case that holds what its task declares."""
    axes = {axis.name: axis for axis in task.axes}
    scalars = {spec.name: spec for spec in task.inputs if isinstance(spec, ScalarSpec)}
    optional = {spec.name for spec in task.tensors if spec.optional}
    expected = ", ".join([*axes, *task.dtypes, *scalars, *sorted(CASE_KEYS)])
    for name, value in case.values.items():
        problem = _value_problem(name, value, axes, task.dtypes, scalars, expected)
        if problem:
            raise document.error([index, name], problem)
    for name in [*axes, *task.dtypes]:
        if name not in case.values:
            raise document.error([index], f"`{name}` is missing")
    for name in sorted(case.omit - optional):
        raise document.error([index, "omit"], f"{name} is not an optional input")
    try:
        worked_out = arguments(task, case)
        for constraint in task.constraints:
            if not constraint.value(worked_out.names):
                raise document.error([index], f"breaks the constraint `{constraint.text}`")
        problem = memory_problem(worked_out)
        if problem:
            raise document.error([index], problem)
        held = worked_out.held_bytes
        if held > MOST_HELD_BYTES:
            most = f"at most {MOST_HELD_BYTES} (16 GiB) are allowed"
            raise document.error([index], f"its tensors hold {held} bytes ({held / 1e9:.3g} GB), {most}")
        return worked_out.names
    except ExpressionError as problem:
        raise document.error([index], str(problem)) from None


def _check_work(document: Document, task: Task, case: Case, names: Mapping[str, Number]) -> None:
    """The declared work must be a number for every case; errors are in the definition, not in the case."""
    for key, expression, meaning in (
        ("flops", task.work.flops, "floating-point operations"),
        ("bytes", task.work.bytes, "bytes moved"),
    ):
        try:
            value = 0 if expression is None else expression.value(names)
            problem = "" if value >= 0 else f"`{expression.text if expression else ''}` is {value}"
        except ExpressionError as failed:
            problem = str(failed)
        if problem:
            raise document.error(
                ["work", key], f"{problem} for {case.id}; expected the {meaning} of one call, 0 or more"
            )


def _value_problem(
    name: str,
    value: object,
    axes: Mapping[str, Axis],
    dtypes: Mapping[str, tuple[str, ...]],
    scalars: Mapping[str, ScalarSpec],
    expected: str,
) -> str:
    if name in axes:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{value!r} is not a whole number"
        return "" if axes[name].admits(value) else f"{value} is outside the domain ({axes[name].domain_text})"
    if name in dtypes:
        return "" if value in dtypes[name] else f"{value!r} is not one of {', '.join(dtypes[name])}"
    if name in scalars:
        dtype = scalars[name].dtype
        return "" if _is_scalar(value, dtype) else f"{value!r} is not a {dtype}"
    return f"unknown key; expected one of: {expected}"


def _is_scalar(value: object, dtype: str) -> bool:
    is_bool = isinstance(value, bool)
    is_number = not is_bool and isinstance(value, (int, float) if dtype == "float32" else int)
    return is_bool if dtype == "bool" else is_number


def _check_distinct(seen: Document, heldout: Document, task: Task) -> None:
    first: dict[object, str] = {}
    for document, cases in ((seen, task.seen), (heldout, task.heldout)):
        for index, case in enumerate(cases):
            key = task.identity(case)
            if key in first:
                raise FileError(document.path, f"equals {first[key]}", line=document.lines[(index,)], key=case.id)
            first[key] = case.id
