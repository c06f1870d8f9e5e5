"""Which names an interpreted kernel may use: Triton's language, its own functions and constants, as when compiled."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from arena.platforms.cpu.triton.internals import Internals

_BUILTINS = frozenset(
    {
        *("len", "list", "range", "float", "int", "isinstance", "getattr", "hasattr", "print", "min", "max"),
        *("abs", "tuple", "bool", "True", "False", "None"),
    }
)
_MODULES = ("triton", "math", "triton.language")
_INNER = ("triton.language.",)
_ATTRIBUTES = ("handle",)
_REFUSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Lambda)


def mend(at: Internals) -> None:
    """Have the interpreter refuse what the compiler's front end refuses, before a kernel runs."""
    owner = at.member(at.interpreter, "InterpretedFunction")
    executor = at.member(at.interpreter, "GridExecutor")
    error = at.member(at.interpreter, "InterpreterError")
    original, original_call = at.member(owner, "rewrite"), at.member(executor, "__call__")
    done = at.member(owner, "rewritten_fn")
    allows = _allowing(at, owner)

    def rewrite(self: Any) -> Any:
        if self.fn not in done and (problem := next(forbidden(self.fn, allows), "")):
            raise error(problem) from NameError(problem)
        return original(self)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if not (_is_tensor(value) or allows(value)):
                name = getattr(value, "__name__", type(value).__name__)
                problem = f"`{name}` was passed to a kernel, which takes tensors, numbers, texts and Triton's functions"
                raise error(problem) from TypeError(problem)
        return original_call(self, *args, **kwargs)

    at.replace(owner, "rewrite", rewrite)
    at.replace(executor, "__call__", __call__)


def forbidden(function: Callable[..., Any], allows: Callable[[Any], bool]) -> Iterator[str]:
    """What a kernel names and may not, each as a sentence."""
    if _is_tritons(function):
        return
    known = _known(function)
    try:
        source = textwrap.dedent("".join(inspect.getsourcelines(function)[0]))
        tree = ast.parse(source)
    except (OSError, SyntaxError, TypeError):
        yield "a kernel has no source that can be read; define it in the file"
        return
    kernel = tree.body[0]
    body = kernel.body if isinstance(kernel, ast.FunctionDef) else [kernel]
    first = function.__code__.co_firstlineno - 1
    own = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, _REFUSED):
            yield f"line {first + node.lineno} of the file: {type(node).__name__} is nothing that Triton compiles"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
            if not _may_be_named(node.id, known, allows):
                yield (
                    f"line {first + node.lineno} of the file: `{node.id}` is neither a tl.constexpr nor a function "
                    "of Triton's or of @triton.jit; pass it as an argument"
                )
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            if not (_is_plain_attribute(node.args[1:2]) or _is_device_library(node.args[:1], known)):
                yield f"line {first + node.lineno} of the file: `{ast.unparse(node)}` is none of Triton's"
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("_") or node.attr in _ATTRIBUTES:
                yield f"line {first + node.lineno} of the file: `.{node.attr}` is none of Triton's"
            elif not _may_be_reached(node, known, own):
                yield f"line {first + node.lineno} of the file: `{ast.unparse(node)}` is none of Triton's"


def _is_plain_attribute(named: list[ast.expr]) -> bool:
    name = named[0].value if named and isinstance(named[0], ast.Constant) else "_"
    return isinstance(name, str) and not name.startswith("_") and name not in _ATTRIBUTES


def _is_device_library(owner: list[ast.expr], known: Mapping[str, Any]) -> bool:
    value = known.get(owner[0].id) if owner and isinstance(owner[0], ast.Name) else None
    return isinstance(value, ModuleType) and value.__name__.startswith("triton.language.extra")


def _is_tritons(function: Callable[..., Any]) -> bool:
    module = sys.modules.get(function.__module__)
    return function.__module__.startswith("triton.") and module is not None and function.__globals__ is vars(module)


def _known(function: Callable[..., Any]) -> Mapping[str, Any]:
    captured = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in captured}}


def _may_be_named(name: str, known: Mapping[str, Any], allows: Callable[[Any], bool]) -> bool:
    if name not in known or known[name] is getattr(builtins, name, known):
        return name in _BUILTINS or name not in vars(builtins)  # what is not defined says so itself
    value = known[name]
    return _is_language(value) if isinstance(value, ModuleType) else allows(value)


def _may_be_reached(node: ast.Attribute, known: Mapping[str, Any], own: set[str]) -> bool:
    """Return whether `a.b.c` stays within Triton's language where `a` is a module."""
    names, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        names.insert(0, inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id in own:
        return True
    value = known.get(inner.id)
    for name in names:
        if not isinstance(value, ModuleType):
            return True
        value = getattr(value, name, None)
        if isinstance(value, ModuleType) and not _is_language(value):
            return False
    return True


def _is_language(module: ModuleType) -> bool:
    return module.__name__ in _MODULES or module.__name__.startswith(_INNER)


def _is_tensor(value: Any) -> bool:
    """Return whether it is PyTorch's own tensor: a class of the candidate's would bring functions of Python with it."""
    import torch

    return type(value) in (torch.Tensor, torch.nn.Parameter)


def _allowing(at: Internals, interpreted: Any) -> Callable[[Any], bool]:
    """Tells values that a kernel may use: constants, its own functions, Triton's language, functions of `math`.

    Exact types, and what stands in modules, decide: subclasses have methods, and names of modules can be written to.
    """
    tl = at.tl
    plain = (bool, int, float, str, type(None), *_types_of_dtypes(tl))
    tuned = (at.member(at.autotuner, "Autotuner"), at.member(at.autotuner, "Heuristics"))

    def allows(value: Any) -> bool:
        if type(value) is tl.constexpr:
            return allows(value.value)
        if type(value) in (tuple, list, tl.tuple if hasattr(tl, "tuple") else tuple):
            return all(map(allows, value))
        if type(value) in plain or type(value) is interpreted:
            return True
        return allows(value.fn) if type(value) in tuned else _is_at_home(value)

    return allows


def _types_of_dtypes(tl: Any) -> list[type]:
    return [kind for kind in vars(tl.core).values() if isinstance(kind, type) and issubclass(kind, tl.dtype)]


def _is_at_home(value: Any) -> bool:
    """Whether a function, or an object's class, is that of the module that it names: Triton's, `math` or ours."""
    kind = value if isinstance(value, type | FunctionType | BuiltinFunctionType) else type(value)
    home = getattr(kind, "__module__", None) or ""
    if home != "math" and not home.startswith(("triton.", "arena.platforms.cpu.triton")):
        return False
    held = vars(sys.modules.get(home, builtins))
    return kind.__globals__ is held if isinstance(kind, FunctionType) else held.get(kind.__name__) is kind
