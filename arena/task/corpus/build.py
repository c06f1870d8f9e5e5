"""From a validated document to a `Task`: the checks that a schema cannot make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arena.errors import FileError
from arena.results.record import Split
from arena.task.corpus.case_checks import CASE_KEYS, check_case, check_declared, check_work, is_scalar, known_names
from arena.task.corpus.strict_yaml import Document
from arena.task.definition import (
    ANY_NUMBER,
    Arithmetic,
    Axis,
    Case,
    Fill,
    InputSpec,
    ModuleInterface,
    OutputComparison,
    Precision,
    ScalarSpec,
    Task,
    TaskType,
    TensorSpec,
    Tolerance,
    ViewOf,
    Work,
)
from arena.task.expression import Expression, ExpressionError
from arena.task.fp8 import FP8
from arena.task.rules import LONGEST_NAME

_MEAN_AND_STD = ("normal", "normal_even", "equal_rows", "peaks")
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
    if max(len(suite), len(name)) > LONGEST_NAME:
        raise document.error(
            ["name"],
            f"the names of task and suite may have {LONGEST_NAME} characters, since names of files hold them; "
            f"these have {len(name)} and {len(suite)}",
        )
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
        module=_module(document, data["module"]) if "module" in data else None,
        independent=data.get("independent", ""),
        latency_bound=data.get("latency_bound", ""),
        least_triton=data.get("least_triton", ""),
        precision=Precision(data.get("precision", "float64")),
        arithmetic=Arithmetic(data.get("arithmetic", "inputs")),
        exceptions=data.get("exceptions", {}),
        equivalent_mutants=data.get("equivalent_mutants", {}),
    )
    _check_names(document, task)
    check_declared(document, task)
    _check_expressions(document, task)
    _check_independent(document, task)
    _check_constants(document, task)
    for case_document, cases in ((seen, task.seen), (heldout, task.heldout)):
        for case in cases:
            names = check_case(case_document, task, case)
            check_work(document, task, case, names)
    _check_distinct(seen, heldout, task)
    return task


def _axis(document: Document, name: str, spec: dict[str, Any]) -> Axis:
    values = tuple(spec.get("values", ()))
    low, high = spec.get("domain", (min(values, default=0), max(values, default=0)))
    if low > high:
        raise document.error(["axes", name, "domain"], f"is empty: {low} is above {high}")
    axis = Axis(name, spec["doc"], low, high, spec.get("multiple_of", 1), values, spec.get("default"))
    if values and "multiple_of" in spec:
        raise document.error(["axes", name, "multiple_of"], "has no meaning beside `values`, which name every size")
    if axis.default is not None and not axis.admits(axis.default):
        raise document.error(["axes", name, "default"], f"{axis.default} is outside the domain")
    return axis


def _input(document: Document, name: str, spec: dict[str, Any]) -> InputSpec:
    if "scalar" in spec:
        if not is_scalar(spec["value"], spec["scalar"]):
            raise document.error(["inputs", name, "value"], f"{spec['value']!r} is not a {spec['scalar']}")
        return ScalarSpec(name, spec["scalar"], spec["value"], spec.get("doc", ""), _domain(document, name, spec))
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
        constant=spec.get("constant", False),
        domain=_domain(document, place[1], spec),
        tolerance=_tolerance(compare) if compare is not None else None,
    )


def _domain(document: Document, name: str, spec: dict[str, Any]) -> tuple[float, float]:
    """Return the range that an input of floating-point numbers declares, by default every number."""
    if "domain" not in spec:
        return ANY_NUMBER
    low, high = (float(str(end).replace(".inf", "inf")) for end in spec["domain"])
    if not low < high:
        raise document.error(["inputs", name, "domain"], f"is empty: {low:g} is not below {high:g}")
    if "scalar" in spec and not low <= spec["value"] <= high:
        raise document.error(["inputs", name, "value"], f"{spec['value']} is outside [{low:g}, {high:g}]")
    return low, high


def _view_of(document: Document, place: list[str | int], spec: dict[str, Any]) -> ViewOf:
    return ViewOf(spec["input"], _expression(document, [*place, "when"], spec["when"]) if "when" in spec else None)


def _module(document: Document, spec: dict[str, Any]) -> ModuleInterface:
    def item(place: list[str | int], text: object) -> Expression | tuple[Expression, ...]:
        if isinstance(text, list):
            return tuple(_expression(document, [*place, i], one) for i, one in enumerate(text))
        return _expression(document, place, text)

    init = tuple(item(["module", "init", i], text) for i, text in enumerate(spec.get("init", [])))
    return ModuleInterface(init, tuple(spec["forward"]), spec.get("state", {}), tuple(spec.get("zeros", ())))


def _fill(document: Document, place: list[str | int], spec: str | dict[str, Any]) -> Fill:
    if isinstance(spec, str):
        return Fill(spec)
    ((kind, value),) = spec.items()
    if isinstance(value, list):
        value = dict(zip(("mean", "std") if kind in _MEAN_AND_STD else ("low", "high"), value, strict=True))
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
    cases: list[Case] = []
    for index, item in enumerate(document.data):
        if split is Split.HELDOUT and "kind" not in item:
            raise document.error([index], "`kind` is missing: a held-out case says in which way it differs")
        if split is Split.SEEN and "kind" in item:
            raise document.error([index, "kind"], "a seen case has no kind, only a held-out one: remove the key")
        values = _given(item)
        case = Case(
            id=f"{split}-{index + 1:02d}",
            split=split,
            kind=item.get("kind", ""),
            values=values | {name: size for name, size in defaults.items() if name not in values},
            omit=frozenset(item.get("omit", ())),
            fills=_fills(document, [index], item),
            note=item.get("note", ""),
            timed=item.get("timed", False),
            calls=item.get("calls", 0),
            gpu_share=float(item.get("gpu_share", 0.0)),
            implied=frozenset(defaults.keys() - values),
            position=index,
        )
        cases += [case, *(_regime(document, case, name, spec) for name, spec in item.get("regimes", {}).items())]
    return tuple(cases)


def _regime(document: Document, case: Case, name: str, changed: dict[str, Any]) -> Case:
    """Return the same sizes with other values; recorded traffic says nothing of them."""
    place: list[str | int] = [case.position, "regimes", name]
    for key in sorted((CASE_KEYS - {"fills"}) & changed.keys()):
        raise document.error([*place, key], "is of the whole case; a regime has `fills` and values of axes and scalars")
    values = _given(changed)
    return replace(
        case,
        id=f"{case.id}.{name}",
        values={**case.values, **values},
        fills={**case.fills, **_fills(document, place, changed)},
        calls=0,
        gpu_share=0.0,
        implied=case.implied - values.keys(),
        regime=name,
    )


def _given(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in CASE_KEYS}


def _fills(document: Document, place: list[str | int], item: dict[str, Any]) -> dict[str, Fill]:
    return {name: _fill(document, [*place, "fills", name], spec) for name, spec in item.get("fills", {}).items()}


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
    known = known_names(task)
    places: _Places = [(["constraints", i], expression) for i, expression in enumerate(task.constraints)]
    places.append((["work", "flops"], task.work.flops))
    if task.work.bytes is not None:
        places.append((["work", "bytes"], task.work.bytes))
    init = task.module.expressions if task.module is not None else ()
    places += [(["module", "init"], expression) for expression in init]
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


def _check_independent(document: Document, task: Task) -> None:
    """The axis of `independent` is a dimension of every result, and of no tensor but as a whole dimension."""
    axis = task.independent
    if not axis:
        return
    if axis not in {one.name for one in task.axes}:
        raise document.error(["independent"], f"`{axis}` is not an axis")
    results = {spec.name for spec in task.tensors if spec.mutable or spec in task.outputs}
    for spec in task.tensors:
        sizes = [size.text for size in spec.shape if axis in size.names]
        if len(sizes) > 1 or any(text != axis for text in sizes):
            raise document.error(["independent"], f"{spec.name} must have `{axis}` as one dimension at most")
        if not sizes and spec.name in results:
            raise document.error(["independent"], f"the result {spec.name} has no dimension `{axis}`")


def _check_constants(document: Document, task: Task) -> None:
    """Constants have memory of their own; a module gets them as its state, and every other tensor in `forward`."""
    for spec in task.tensors:
        views = [other.name for other in task.tensors if other.view_of and other.view_of.input == spec.name]
        if spec.constant and (spec.mutable or spec.view_of or views):
            raise document.error(["inputs", spec.name, "constant"], "must not be beside `mutable` or `view_of`")
    if task.module is None:
        return
    inputs = {spec.name: spec for spec in task.inputs}
    held = set(task.module.state.values())
    for name in (*task.module.forward, *held):
        if name not in inputs:
            raise document.error(["module"], f"`{name}` is not an input")
    if mutable := [spec.name for spec in task.tensors if spec.mutable]:
        raise document.error(["module"], f"a module returns its results, and `{mutable[0]}` is mutable")
    if wrong := sorted(held ^ set(task.constants)):
        raise document.error(["module", "state"], f"must name each constant input, and only those: see `{wrong[0]}`")
    tensors = {spec.name for spec in task.inputs if isinstance(spec, TensorSpec)}
    if missing := sorted(tensors - held - set(task.module.forward)):
        raise document.error(["module", "forward"], f"`{missing[0]}` is missing, which is no constant")


def _check_distinct(seen: Document, heldout: Document, task: Task) -> None:
    first: dict[object, str] = {}
    for document, cases in ((seen, task.seen), (heldout, task.heldout)):
        for case in cases:
            key = task.identity(case)
            if key in first:
                line = document.lines[(case.position,)]
                raise FileError(document.path, f"equals {first[key]}", line=line, key=case.id)
            first[key] = case.id
