"""The files of an imported task: task.yaml, cases and reference.py."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from arena.integrations.importers.cases import CaseDrawer, DrawnCase
from arena.integrations.importers.domain import Domain, work_text
from arena.integrations.importers.problem import Problem
from arena.integrations.importers.trace import SELECTING, Drawn
from arena.task.corpus.task_folder import DEFINITION, HELDOUT
from arena.task.definition import TaskType

_SCALAR_FACTORS = (1.0, 0.5, 1.75, -0.6)
_SPARSE = "gradients reach only the elements that are chosen, though every element must be read"


class _Flow(dict[str, Any]):
    """A mapping that is written in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Flow` in one line."""


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)


def write_task(folder: Path, problem: Problem, domain: Domain, drawer: CaseDrawer) -> None:
    """Write the folder anew."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / "reference.py").write_text(problem.text, encoding="utf-8")
    text = yaml.dump(
        _definition(folder.name, problem, domain, drawer),
        Dumper=_Dumper,
        sort_keys=False,
        width=150,
        allow_unicode=True,
    )
    (folder / DEFINITION).write_text(text, encoding="utf-8")
    scalars = [drawn for drawn in domain.base.inputs if drawn.value is not None]
    generator = random.Random(problem.name)
    for name, cases in (("seen.yaml", drawer.seen), (HELDOUT, drawer.heldout)):
        lines = [_case(case, scalars, generator) for case in cases]
        (folder / name).write_text("".join(lines), encoding="utf-8")


def place(root: Path, task_type: TaskType, suite: str, problem: Problem) -> Path:
    """Return where a task lies in a corpus."""
    return root / task_type / suite / problem.name


def _case(case: DrawnCase, scalars: Sequence[Drawn], generator: random.Random) -> str:
    values: dict[str, Any] = {"kind": case.kind} if case.kind else {}
    values.update(case.sizes)
    for drawn in scalars:
        assert drawn.value is not None
        values[drawn.name] = round((drawn.value or 1.0) * generator.choice(_SCALAR_FACTORS), 6)
    if case.note:
        values["note"] = case.note
    if case.timed:
        values["timed"] = True
    return "- " + yaml.dump(_Flow(values), Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


def _definition(name: str, problem: Problem, domain: Domain, drawer: CaseDrawer) -> dict[str, Any]:
    shapes = domain.shapes
    data: dict[str, Any] = {
        "name": name,
        "summary": _summary(problem),
        "entry": name,
        "source": problem.origin,
        "axes": {
            axis.name: _Flow(
                doc=problem.docs.get(axis.name, f"{axis.name.replace('_', ' ')} of the problem, {axis.base} there"),
                domain=[axis.low, axis.high],
                **({"multiple_of": axis.step} if axis.step > 1 else {}),
            )
            for axis in domain.axes
        },
    }
    constraints = [*problem.constraints, *shapes.constraints]
    if constraints:
        data["constraints"] = constraints
    if problem.init is not None:
        data["module"] = {
            "init": list(problem.init),
            "forward": list(problem.arguments),
            **({"state": dict(problem.weights)} if problem.weights else {}),
            **({"zeros": list(problem.zeros)} if problem.zeros else {}),
        }
    inputs: dict[str, Any] = {drawn.name: _input(drawn, domain) for drawn in domain.base.inputs}
    for weight, dims in shapes.weights.items():
        inputs[weight] = _Flow(
            shape=[_size(dim) for dim in dims],
            dtype="float32",
            fill=_weight_fill(weight, dims),
            **({"constant": True} if problem.init is not None else {}),
            doc="a weight, contiguous",
        )
    data["inputs"] = inputs
    names = ["y"] if len(shapes.outputs) == 1 else [f"y{number}" for number in range(len(shapes.outputs))]
    data["outputs"] = {
        _free(output, {*inputs, *data["axes"]}): _Flow(
            shape=[_size(dim) for dim in dims], dtype=_output_dtype(dtype), doc="contiguous"
        )
        for output, dims, (_, dtype) in zip(names, shapes.outputs, domain.base.outputs, strict=True)
    }
    data["work"] = _Flow(flops=work_text(shapes, {axis.name: axis.base for axis in domain.axes}))
    if drawer.is_short:
        data["latency_bound"] = "the problem's own sizes are this small"
    masked = any(drawn.dtype == "bool" for drawn in domain.base.inputs)
    if masked or any(term.operator.startswith(SELECTING) for term in domain.base.terms):
        data["exceptions"] = {"work": _SPARSE}
    return data


def _summary(problem: Problem) -> str:
    text = problem.summary.rstrip(".")
    absent = f" Weights on which no output depends are 0: {', '.join(problem.zeros)}." if problem.zeros else ""
    return f"{text}. From {problem.origin}; reference.py says what is computed, in float32 and rounded once.{absent}"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_out"
    return name


def _size(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _output_dtype(dtype: str) -> str:
    return "float32" if dtype == "float64" else dtype


def _input(drawn: Drawn, domain: Domain) -> dict[str, Any]:
    if drawn.value is not None:
        return _Flow(scalar="float32", value=drawn.value, doc="a number")
    shape = [_size(dim) for dim in domain.shapes.inputs[drawn.name]]
    fill: Any = "normal"
    is_second = drawn is not domain.base.inputs[0] and len(shape) > 1
    if is_second and drawn.dtype != "float32" and any(term.product for term in domain.base.terms):
        # A product of two uneven operands must not overflow float16.
        fill = _Flow(normal=[0.0, f"1 / sqrt({shape[-1]})"])
    if drawn.how == "bernoulli":
        fill = _Flow(bernoulli=0.5)
    elif drawn.how == "integers":
        fill = _Flow(integers=[_size(text) for text in domain.shapes.bounds[drawn.name]])
    return _Flow(shape=shape, dtype=drawn.dtype, fill=fill, doc="contiguous")


def _weight_fill(name: str, dims: Sequence[str]) -> Any:
    """Normal, with a deviation that keeps a product's size; gains of normalizations are around 1."""
    inner = dims[1:] if len(dims) > 1 else ()
    numbers = math.prod(int(dim) for dim in inner if dim.isdigit())
    symbols = [f"({dim})" for dim in inner if not dim.isdigit() and dim != "1"]
    if symbols or numbers > 1:
        product = " * ".join([*([str(numbers)] if numbers > 1 else []), *symbols])
        return _Flow(normal=[0.0, f"1 / sqrt({product})"])
    if len(dims) == 1 and name.endswith("weight"):
        return _Flow(normal=[1.0, 0.5])
    return _Flow(normal=[0.0, 0.5])
