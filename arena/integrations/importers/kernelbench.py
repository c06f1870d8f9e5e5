"""KernelBench: a class `Model`, sizes as constants of the module, `get_inputs()` and `get_init_inputs()`."""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from arena.errors import UsageError
from arena.integrations.importers.lifting import Lifted, function_text, globals_used, sets_any
from arena.integrations.importers.problem import RESERVED, Problem, Reason, Skipped
from arena.task.expression import Expression, ExpressionError

_PACKAGES = frozenset({"torch", "numpy", *sys.stdlib_module_names})
_MAKERS = ("get_inputs", "get_init_inputs")
SUITE = "kernelbench_level{}"


def find(checkout: Path, levels: Iterable[int]) -> dict[Path, str]:
    """Return the problem files of some levels, each with its suite; raises `UsageError` where a level is missing."""
    found = {}
    for level in levels:
        folders = [folder for place in ("KernelBench", ".") if (folder := checkout / place / f"level{level}").is_dir()]
        if not folders:
            raise UsageError(f"{checkout}: no folder KernelBench/level{level}; expected a checkout of KernelBench")
        files = [path for path in folders[0].glob("*.py") if not path.name.startswith("_")]
        for path in sorted(files, key=_order):
            found[path] = SUITE.format(level)
    return found


def _order(path: Path) -> tuple[int, str]:
    number = re.match(r"\d+", path.name)
    return int(number[0]) if number else 0, path.name


def files(path: Path) -> list[Path]:
    """Return the file that a problem is made from."""
    return [path]


def task_name(path: Path) -> str:
    """Return `p019_relu` for `19_ReLU.py`: a name that C and the task format take."""
    number, words = re.match(r"(\d*)_?(.*)", path.stem).groups()  # type: ignore[union-attr]
    plain = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return "_".join(filter(None, [f"p{int(number):03d}" if number else "p", plain]))[:80].rstrip("_")


def read(path: Path, only: Container[str] | None = None, zeros: Container[str] = ()) -> Problem:
    """Turn one file into a `Problem`; raises `Skipped` where it has another form.

    Sizes that `only` does not hold, where it is given, are constants. Weights that `zeros` holds are 0, not arguments.
    """
    source, tree = parsed(path)
    makers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _MAKERS}
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    if model is None or set(makers) != set(_MAKERS):
        raise Skipped(Reason.FORMAT, "it does not define Model, get_inputs and get_init_inputs")
    arguments = forward_arguments(model)
    settings = [copy.deepcopy(node) for node in tree.body if isinstance(node, ast.Assign)]
    definitions = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    definitions = [node for node in definitions if node.name not in _MAKERS]
    fixed = globals_used(definitions)
    lifted = Lifted(settings, arguments, fixed, only)
    inputs, init = (copy.deepcopy(_body(makers[name])) for name in _MAKERS)
    lifted.lift_calls(inputs)
    build = [*lifted.statements, *_returning(init)]
    needed = any(sets_any(node, fixed) for node in settings)
    dropped = (ast.Assign, ast.If, ast.Expr) if not needed else (ast.If, ast.Expr)
    kept = [node for node in tree.body if node not in makers.values() and not isinstance(node, dropped)]
    name = task_name(path)
    origin = f"KernelBench {path.parent.name}/{path.name}"
    code = _source(kept, source)
    weights = weight_names(f"{code}\n{function_text('_model', lifted.sizes, build)}", lifted, arguments)
    return Problem(
        name=name,
        origin=origin,
        summary=docs_of(model) or path.stem.replace("_", " "),
        text=module_text(origin, code, lifted.sizes, build, arguments, weights, zeros),
        probe=function_text("_inputs", lifted.sizes, [*lifted.statements, *inputs]),
        sizes=lifted.sizes,
        arguments=tuple(arguments),
        weights={name: argument for name, argument in weights.items() if argument not in zeros},
        zeros=tuple(name for name, argument in weights.items() if argument in zeros),
        init=init_arguments([*lifted.statements, *init], lifted.sizes),
    )


def init_arguments(
    statements: Sequence[ast.stmt], sizes: Container[str]
) -> tuple[int | float | str | list[int | float | str], ...] | None:
    """Return what `get_init_inputs` returns, in numbers and expressions of the sizes; None where it is anything else.

    Args:
        statements: the assignments of sizes, then the function's body.
        sizes: the names that stay names.
    """
    *before, last = statements
    known: dict[str, ast.expr] = {}
    for one in before:
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(one, ast.Assign) and isinstance(target, ast.Name):
            known[target.id] = one.value
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.List | ast.Tuple):
        return None
    try:
        resolved = [_Resolved(known, sizes).visit(copy.deepcopy(one)) for one in last.value.elts]
        return tuple(
            [_number(one) for one in item.elts] if isinstance(item, ast.Tuple | ast.List) else _number(item)
            for item in resolved
        )
    except (ValueError, ExpressionError):
        return None


class _Resolved(ast.NodeTransformer):
    """Replaces names by what was assigned to them, down to sizes and numbers; raises `ValueError` for others."""

    def __init__(self, known: Mapping[str, ast.expr], sizes: Container[str]) -> None:
        self._known, self._sizes = known, sizes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._sizes:
            return node
        if node.id not in self._known:
            raise ValueError(node.id)
        others = {name: value for name, value in self._known.items() if name != node.id}
        return _Resolved(others, self._sizes).visit(copy.deepcopy(self._known[node.id]))  # type: ignore[no-any-return]


def _number(node: ast.expr) -> int | float | str:
    """Return a number, or the text of an expression."""
    text = ast.unparse(node)
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return Expression(text).text
    if not isinstance(value, bool | int | float):
        raise ValueError(text)
    return int(value) if isinstance(value, bool) else value


def parsed(path: Path) -> tuple[str, ast.Module]:
    """Return the text of a problem, and parsed; refuses what imports a package that a judge does not have."""
    source = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(source)
    except SyntaxError as problem:
        raise Skipped(Reason.FORMAT, f"line {problem.lineno}: {problem.msg}") from None
    check_imports(tree)
    return source, tree


def check_imports(tree: ast.Module) -> None:
    """Refuse what a judge does not have, before anything runs."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0] not in _PACKAGES:
                raise Skipped(Reason.PACKAGE, f"it imports {name}")


def forward_arguments(model: ast.ClassDef) -> list[str]:
    """Return the names of what `forward` is given, the module itself left out."""
    forward = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None)
    if forward is None or forward.args.vararg or forward.args.kwarg:
        raise Skipped(Reason.FORMAT, "Model.forward does not name its arguments")
    return [safe(argument.arg) for argument in forward.args.args[1:]]


def safe(name: str) -> str:
    """Return a name that C++ and the task format take."""
    plain = re.sub(r"\W+", "_", name).strip("_") or "x"
    return f"{plain}_" if plain in RESERVED else plain


def docs_of(model: ast.ClassDef) -> str:
    """Return the first paragraph of the class's docstring in one line."""
    text = ast.get_docstring(model) or ""
    return " ".join(text.split("\n\n")[0].split())


def weight_names(text: str, lifted: Lifted, arguments: Sequence[str]) -> dict[str, str]:
    """Return an argument name for each parameter of the model at its base sizes."""
    from arena.semantics.modules import build_module

    names: dict[str, object] = {"__name__": "arena_import_names"}
    try:
        exec(compile(text, "problem", "exec"), names)
        make = names["_model"]
        module = build_module(make, tuple(lifted.sizes.values()), "meta")  # type: ignore[arg-type]
        found = [name for name, _ in module.named_parameters()]
    except Exception as problem:  # the problem's own code may raise whatever it likes
        raise Skipped(Reason.RUN, f"the model: {type(problem).__name__}: {problem}") from problem
    taken = {*arguments, *lifted.sizes}
    chosen: dict[str, str] = {}
    for name in found:
        wanted = safe(name.replace(".", "_"))
        while wanted in taken:
            wanted += "_weight"
        taken.add(wanted)
        chosen[name] = wanted
    return chosen


def module_text(
    origin: str,
    source: str,
    sizes: Iterable[str],
    build: Sequence[ast.stmt],
    arguments: Sequence[str],
    weights: Mapping[str, str],
    zeros: Container[str],
) -> str:
    """Return reference.py: the problem's own code, and `reference` with the model's weights as arguments."""
    absent = tuple(name for name, argument in weights.items() if argument in zeros)
    passed = {name: argument for name, argument in weights.items() if name not in absent}
    given = [*arguments, *passed.values(), *sizes]
    pairs = "".join(f'        "{name}": {argument},\n' for name, argument in passed.items())
    mapping = f"{{\n{pairs}    }}" if pairs else "{}"
    last = f", zeros={absent!r}" if absent else ""
    sizes_tuple = "".join(f"{name}, " for name in sizes)
    return (
        f'"""{origin}, converted by `arena import`: its own code, with weights as arguments."""\n\n'
        f"from arena.semantics.modules import call_module, flat\n\n{source}\n\n\n"
        f"{function_text('_model', sizes, build)}\n\n"
        f"def reference({', '.join(given)}):\n"
        f'    """The outputs of the model in training mode."""\n'
        f"    weights = {mapping}\n"
        f"    return flat(call_module(_model, ({sizes_tuple}), [{', '.join(arguments)}], weights{last}))\n"
    )


def _source(nodes: Iterable[ast.stmt], source: str) -> str:
    lines = source.splitlines()
    parts = []
    for node in nodes:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        parts.append("\n".join(line.rstrip() for line in lines[first - 1 : node.end_lineno]))
    return "\n".join(parts)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body


def _returning(init: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of `get_init_inputs` with the model returned in place of its arguments."""
    last = init[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        raise Skipped(Reason.FORMAT, "get_init_inputs does not end with a return")
    call = ast.Call(ast.Name("Model", ast.Load()), [ast.Starred(last.value, ast.Load())], [])
    return [*init[:-1], ast.Return(call)]
