"""Launches: how arguments are typed, what a grid function sees, and when Triton's language is patched.

Memory needs no mend: CPU tensors are used where they lie, so views, overlaps and shared memory are written in place.
"""

from __future__ import annotations

import dataclasses
import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.internals import Internals
from arena.platforms.cpu.triton.launch_order import ends_of, runs_ends, runs_nothing
from arena.platforms.cpu.triton.rewriting import counting_range

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""of a grid, along x, y and z: what GPUs of both vendors launch"""


class _AsGiven(int):
    """An integer argument that the compiler makes no constant of, whatever its value."""


class GridLimit(Exception):
    """A launch of more programs than a GPU's grid has."""


def mend(at: Internals) -> None:
    """Replace how the interpreter prepares and runs a grid."""
    _mend_language(at)
    _mend_arguments(at)
    _mend_grid(at)
    _mend_specialization(at)
    _mend_imported_names(at)


class _Permanent:
    """What newer interpreters want back from patching: an undo, which does nothing here."""

    def restore(self) -> None:
        return


def _mend_language(at: Internals) -> None:
    """Patch `tl` once for the whole process; the interpreter does so at every launch and every device function."""
    tl = at.tl
    original = at.member(at.interpreter, "_patch_lang")
    original(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    at.interpreter._patch_lang = lambda fn: _Permanent()

    at.replace(tl.tensor, "__index__", lambda self: int(self.handle.data.reshape(-1)[0]))
    for module in (tl, tl.core):
        at.replace(module, "range", counting_range(at))
    builder = at.member(at.interpreter, "interpreter_builder")
    # The check computes every integer sum a second time in int64, for an assertion that is off outside debugging.
    builder.options = dataclasses.replace(at.member(builder, "options"), sanitize_overflow=False)


def _mend_arguments(at: Internals) -> None:
    """Scalars get the type that the compiler gives them: int1, int32 or wider, fp32; a 1 stays a constant."""
    original = at.member(at.interpreter, "_implicit_cvt")
    tl = at.tl

    def implicit(arg: Any) -> Any:
        if isinstance(arg, bool):
            return at.tensor(np.array(arg, np.bool_), tl.int1)
        if type(arg) is int and arg == 1:
            return arg
        if isinstance(arg, int):
            if not -(2**63) <= arg < 2**64:
                raise ValueError(f"integer argument {arg} fits no type")
            narrow = tl.int32 if -(2**31) <= arg < 2**31 else tl.int64
            dtype = tl.uint64 if arg >= 2**63 else narrow
            return at.tensor(np.array(arg, at.np_dtype(dtype)), dtype)
        if isinstance(arg, float):
            return at.tensor(np.array(arg, np.float64).astype(np.float32), tl.float32)
        return original(arg)

    at.replace(at.interpreter, "_implicit_cvt", implicit)


def _mend_grid(at: Internals) -> None:
    """A grid function sees the caller's arguments, and numbers overflow as silently as on a device."""
    executor = at.member(at.interpreter, "GridExecutor")
    original = at.member(executor, "__call__")

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("warmup", False):
            return None
        signature = inspect.signature(self.fn)
        kwargs = {name: value for name, value in kwargs.items() if name in signature.parameters}
        grid = self.grid
        if callable(grid):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            grid = grid(dict(bound.arguments))
        self.grid = tuple(int(size) for size in grid)
        if any(size > most for size, most in zip(self.grid, MOST_BLOCKS, strict=False)):
            said = " x ".join(map(str, self.grid))
            raise GridLimit(f"a grid of {said} programs; at most 2147483647 x 65535 x 65535 are launched")
        if runs_nothing():
            return None
        with np.errstate(all="ignore"):
            if not runs_ends():
                return original(self, *args, **kwargs)
            with ends_of(self.grid) as self.grid:
                return original(self, *args, **kwargs)

    at.replace(executor, "__call__", __call__)
    # The interpreter would copy every argument to the CPU and back; it lies there.
    at.replace(executor, "_init_args_hst", lambda self, args, kwargs: (list(args), dict(kwargs)))
    at.replace(executor, "_restore_args_dev", lambda self, *_: None)


def _mend_specialization(at: Internals) -> None:
    """Let an integer argument of 1 be a constant, which is no tensor, unless the kernel has it otherwise.

    The compiler does so for every parameter without a type that `do_not_specialize` does not name.
    """
    owner = at.member(at.interpreter, "InterpretedFunction")
    original = at.member(owner, "run")

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = self.kwargs.get("do_not_specialize") or ()
        given = set()
        for number, (name, parameter) in enumerate(inspect.signature(self.fn).parameters.items()):
            typed = parameter.annotation is not parameter.empty and "constexpr" not in str(parameter.annotation)
            if typed or name in named or number in named:
                given.add(name)
        named_args = zip(self.arg_names, args, strict=False)
        surplus = args[len(self.arg_names) :]
        args = (*(_marked(value, name in given) for name, value in named_args), *surplus)
        return original(self, *args, **{name: _marked(value, name in given) for name, value in kwargs.items()})

    at.replace(owner, "run", run)


def _marked(value: Any, as_given: bool) -> Any:
    return _AsGiven(value) if as_given and type(value) is int else value


def _mend_imported_names(at: Internals) -> None:
    """`from triton.language import load`, done before the patch, names the compiler's function: exchange it."""
    owner = at.member(at.interpreter, "InterpretedFunction")
    original = at.member(owner, "rewrite")
    done = at.member(owner, "rewritten_fn")
    tl = at.tl

    def rewrite(self: Any) -> Any:
        names = {} if self.fn in done else self.fn.__globals__
        for name, value in list(names.items()):
            if callable(value) and tl.core.is_builtin(value):
                home = next((m for m in (tl, tl.math) if hasattr(m, value.__name__)), None)
                if home is not None:
                    names[name] = getattr(home, value.__name__)
        return original(self)

    at.replace(owner, "rewrite", rewrite)
