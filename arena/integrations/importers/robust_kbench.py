"""robust-kbench: a class `Model`, `get_inputs` with sizes as keywords, and configurations in config_forward.json."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from arena.errors import UsageError
from arena.integrations.importers.kernelbench import docs_of, forward_arguments, module_text, parsed, weight_names
from arena.integrations.importers.lifting import Lifted, function_text
from arena.integrations.importers.problem import Problem, Reason, Skipped

SUITE = "robust_kbench"
_FORWARD, _BACKWARD, _CONFIG = "func_forward.py", "func_backward.py", "config_forward.json"
_KINDS = ("input", "init", "shared")


def find(checkout: Path) -> dict[Path, str]:
    """Return the problem files below `tasks`, each with its suite; raises `UsageError` where there are none."""
    root = checkout / "tasks"
    files = sorted(path for name in (_FORWARD, _BACKWARD) for path in root.rglob(name))
    if not files:
        raise UsageError(f"{root}: holds no {_FORWARD}; expected a checkout of robust-kbench")
    return dict.fromkeys(files, SUITE)


def task_name(path: Path) -> str:
    """Return the folder's path below `tasks` as a name, with `_backward` for a backward pass."""
    parts = path.parent.parts
    below = parts[len(parts) - parts[::-1].index("tasks") :] if "tasks" in parts else parts[-1:]
    name = re.sub(r"[^a-z0-9]+", "_", "_".join(below).lower()).strip("_")
    return f"{name}_backward" if path.name == _BACKWARD else name


def files(path: Path) -> list[Path]:
    """Return the problem's file and its configurations."""
    config = path.with_name(_CONFIG)
    return [path, config] if config.is_file() else [path]


def read(path: Path, only: Container[str] | None = None, zeros: Container[str] = ()) -> Problem:
    """Turn one file into a `Problem`; raises `Skipped` where it has another form. See `kernelbench.read`."""
    if path.name == _BACKWARD:
        raise Skipped(Reason.FORMAT, "a backward pass: its result is a gradient that autograd computes")
    source, tree = parsed(path)
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    maker = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "get_inputs"), None)
    if model is None or maker is None:
        raise Skipped(Reason.FORMAT, "it does not define Model and get_inputs")
    arguments = [name for name in forward_arguments(model) if name != "fn"]
    settings = _settings(path.parent / _CONFIG, tree, model, maker)
    statements = [_assignment(name, value) for name, value in settings.items()]
    lifted = Lifted(statements, arguments, (), only)
    init = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    build = [*lifted.statements, _call("Model", _keywords(init) if init else [], settings)]
    inputs = [*lifted.statements, _call("get_inputs", _keywords(maker), settings)]
    maker_text = ast.get_source_segment(source, maker) or ""
    code = source.replace(maker_text, "").strip()
    weights = weight_names(f"{code}\n{function_text('_model', lifted.sizes, build)}", lifted, arguments)
    name = task_name(path)
    origin = f"robust-kbench tasks/{name}"
    return Problem(
        name=name,
        origin=origin,
        summary=docs_of(model) or name.replace("_", " "),
        text=module_text(origin, code, lifted.sizes, build, arguments, weights, zeros),
        probe=f"{maker_text}\n\n{function_text('_inputs', lifted.sizes, inputs)}",
        sizes=lifted.sizes,
        arguments=tuple(arguments),
        weights={name: argument for name, argument in weights.items() if argument not in zeros},
        zeros=tuple(name for name, argument in weights.items() if argument in zeros),
    )


def _settings(config: Path, tree: ast.Module, model: ast.ClassDef, maker: ast.FunctionDef) -> dict[str, Any]:
    """Every keyword with its default, over it the first configuration of the file."""
    init = [node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, Any] = {}
    for function in (*init, maker):
        positional = function.args.args
        defaults = function.args.defaults
        for argument, default in zip(positional[len(positional) - len(defaults) :], defaults, strict=True):
            text = constants.get(default.id, default) if isinstance(default, ast.Name) else default
            try:
                found[argument.arg] = ast.literal_eval(text)
            except ValueError:
                raise Skipped(Reason.FORMAT, f"the default of `{argument.arg}` is no literal") from None
    if config.is_file():
        given = json.loads(config.read_text(encoding="utf-8"))
        for kind in _KINDS:
            found.update(next(iter(given.get(f"single_{kind}_configs", [])), {}))
    return found


def _assignment(name: str, value: Any) -> ast.stmt:
    tree = ast.parse(f"{name} = {tuple(value) if isinstance(value, list) else value!r}")
    return tree.body[0]


def _keywords(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs) if argument.arg != "self"]


def _call(function: str, keywords: Iterable[str], settings: Container[str]) -> ast.stmt:
    given = ", ".join(f"{name}={name}" for name in keywords if name in settings)
    return ast.parse(f"return {function}({given})").body[0]
