"""FlashInfer-Bench: definitions as JSON (axes, tensors, a reference in PyTorch), workloads as JSON lines."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from arena.errors import UsageError
from arena.integrations.importers.kernelbench import check_imports, safe
from arena.integrations.importers.problem import RESERVED, Problem, Reason, Skipped
from arena.task.expression import Expression, ExpressionError

_FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_MOST_WORKLOADS = 3
_BASE = 1024
"""of an axis that no workload sets"""


def find(checkout: Path) -> dict[Path, str]:
    """Return all definitions, each with its suite; raises `UsageError` where there are none."""
    files = sorted(path for path in checkout.rglob("*.json") if "definitions" in path.parts[len(checkout.parts) :])
    if not files:
        raise UsageError(f"{checkout}: no definitions/**/*.json; expected a FlashInfer-Trace folder or a checkout")
    return {path: _suite(path) for path in files}


def _suite(path: Path) -> str:
    folder = path.parent.name
    return "flashinfer" if folder == "definitions" else f"flashinfer_{re.sub(r'[^a-z0-9]+', '_', folder.lower())}"


def task_name(path: Path) -> str:
    """Return the definition's name in characters that C and the task format take."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")
    return name if name[:1].isalpha() else f"p_{name}"


def files(path: Path) -> list[Path]:
    """Return the definition and its workloads."""
    root = next(parent for parent in path.parents if parent.name == "definitions").parent
    return [path, *sorted((root / "workloads").rglob(f"{path.stem}.jsonl"))]


def read(path: Path, only: Container[str] | None = None, zeros: Container[str] = ()) -> Problem:
    """Turn one definition into a `Problem`; raises `Skipped` where it has another form. See `kernelbench.read`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        code = ast.parse(data["reference"])
        inputs: Mapping[str, Any] = data["inputs"]
        outputs: Mapping[str, Any] = data["outputs"]
        axes: Mapping[str, Any] = data["axes"]
    except (ValueError, KeyError, SyntaxError) as problem:
        raise Skipped(Reason.FORMAT, f"{type(problem).__name__}: {problem}") from None
    check_imports(code)
    workloads = [entry["workload"] for file in files(path)[1:] for entry in _lines(file)]
    for name, spec in inputs.items():
        _check_input(name, spec, workloads)
    renamed = {name: f"{name}_size" if name in RESERVED or name in inputs or name in outputs else name for name in axes}
    base = {renamed[name]: int(spec.get("value") or _largest(name, workloads)) for name, spec in axes.items()}
    sizes = {name: size for name, size in base.items() if only is None or name in only}
    constants = {name: size for name, size in base.items() if name not in sizes}
    arguments = tuple(safe(name) for name in inputs)
    name = task_name(path)
    origin = f"FlashInfer-Bench {path.stem}"
    return Problem(
        name=name,
        origin=origin,
        summary=data.get("description") or path.stem.replace("_", " "),
        text=_text(origin, code, inputs, outputs, sizes),
        probe=_probe(inputs, renamed, sizes, constants, workloads),
        sizes=sizes,
        arguments=arguments,
        docs={renamed[name]: spec["description"] for name, spec in axes.items() if spec.get("description")},
        workloads=_spread([{renamed[name]: int(size) for name, size in one["axes"].items()} for one in workloads]),
        constraints=_constraints(data.get("constraints") or (), renamed, constants),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _check_input(name: str, spec: Mapping[str, Any], workloads: list[dict[str, Any]]) -> None:
    """Refuse inputs whose values a fill cannot give."""
    kinds = {one["inputs"].get(name, {}).get("type", "random") for one in workloads} or {"random"}
    if "safetensors" in kinds:
        raise Skipped(Reason.INPUT, f"the values of `{name}` lie in a file (safetensors)")
    if spec["shape"] is None and "scalar" not in kinds:
        raise Skipped(Reason.INPUT, f"no workload gives the scalar `{name}` a value")
    if spec["shape"] is not None and spec["dtype"] not in _FLOATS:
        raise Skipped(Reason.INPUT, f"`{name}` is {spec['dtype']}, and the format does not say which values it takes")
    if spec["shape"] == []:
        raise Skipped(Reason.INPUT, f"`{name}` has no dimension")


def _largest(name: str, workloads: list[dict[str, Any]]) -> int:
    return max((int(one["axes"][name]) for one in workloads if name in one["axes"]), default=_BASE)


def _spread(workloads: list[dict[str, int]]) -> tuple[Mapping[str, int], ...]:
    """The largest distinct workloads."""
    distinct = list({tuple(sorted(one.items())): one for one in workloads}.values())
    return tuple(sorted(distinct, key=lambda one: -sum(one.values()))[:_MOST_WORKLOADS])


def _text(
    origin: str, code: ast.Module, inputs: Mapping[str, Any], outputs: Mapping[str, Any], sizes: Mapping[str, int]
) -> str:
    """Return reference.py; assertions are left out, since sizes vary."""
    plain = ast.fix_missing_locations(_Plain().visit(code))
    tensors = {name: spec["dtype"] for name, spec in inputs.items() if spec["shape"] is not None}
    pairs = ", ".join(f'"{name}": {safe(name)}' for name in inputs)
    return (
        f'"""{origin}, converted by `arena import`: its own reference, sizes left open."""\n\n'
        f"from arena.semantics.casts import call_uncast, in_order\n\n{ast.unparse(plain)}\n\n\n"
        f"def reference({', '.join([*map(safe, inputs), *sizes])}):\n"
        f'    """The outputs of `run`, in order."""\n'
        f"    return in_order(call_uncast(run, {{{pairs}}}, {tensors!r}), {list(outputs)!r})\n"
    )


class _Plain(ast.NodeTransformer):
    """Without assertions, and with gradients: the check of the declared work counts by them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Drop decorators that switch gradients off."""
        self.generic_visit(node)
        gone = ("no_grad", "inference_mode")
        node.decorator_list = [one for one in node.decorator_list if not any(word in ast.unparse(one) for word in gone)]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Put nothing in its place."""
        return ast.copy_location(ast.Pass(), node)


def _probe(
    inputs: Mapping[str, Any],
    renamed: Mapping[str, str],
    sizes: Mapping[str, int],
    constants: Mapping[str, int],
    workloads: list[dict[str, Any]],
) -> str:
    lines = [f"    {name} = {size}" for name, size in constants.items()]
    made = []
    for name, spec in inputs.items():
        if spec["shape"] is None:
            values = [one["inputs"][name]["value"] for one in workloads if "value" in one["inputs"].get(name, {})]
            made.append(repr(float(values[0])))
        else:
            shape = ", ".join(renamed.get(str(size), str(size)) for size in spec["shape"])
            made.append(f"torch.randn({shape}).to(torch.{spec['dtype']})")
    head = f"import torch\n\n\ndef _inputs({', '.join(sizes)}):"
    return "\n".join([head, *lines, f"    return [{', '.join(made)}]\n"])


def _constraints(texts: tuple[str, ...], renamed: Mapping[str, str], constants: Mapping[str, int]) -> tuple[str, ...]:
    """Return the definition's own conditions on its axes."""
    found = []
    for text in texts:
        for name, now in {**renamed, **{name: str(size) for name, size in constants.items()}}.items():
            text = re.sub(rf"\b{re.escape(name)}\b", now, text)
        try:
            names = Expression(text).names
        except ExpressionError as problem:
            raise Skipped(Reason.FORMAT, f"the constraint `{text}`: {problem}") from None
        if not names <= set(renamed.values()):
            raise Skipped(Reason.INPUT, f"the constraint `{text}` depends on values of the inputs")
        if names:
            found.append(text)
    return tuple(found)
