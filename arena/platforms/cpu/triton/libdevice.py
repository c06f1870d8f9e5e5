"""`libdevice` in numpy, reached as on a GPU: by the symbol that NVIDIA's or AMD's dispatch table names.

The tables stay Triton's own, so a call with types that the vendor has no symbol for fails here as it does there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.casting import convert
from arena.platforms.cpu.triton.internals import Array, Internals
from arena.platforms.cpu.triton.libdevice_functions import FUNCTIONS, conversion

_PREFIX = re.compile(r"^__(nv|ocml|ockl|triton_hip)_(native_)?")
_SUFFIX = re.compile(r"_[fiu](16|32|64)$")


def implementation(symbol: str) -> Callable[..., Array]:
    """The numpy function behind a device symbol such as `__nv_expf` or `__ocml_exp_f64`."""
    name = _SUFFIX.sub("", _PREFIX.sub("", symbol))
    for candidate in (name, name.removesuffix("f"), name.removesuffix("d"), name.removesuffix("ll")):
        if candidate in FUNCTIONS:
            return FUNCTIONS[candidate]
    directed = conversion(name)
    if directed is not None:
        return directed
    raise NotImplementedError(f"the CPU platform has no implementation of the device function {symbol}")


def mend(at: Internals) -> None:
    """Give the interpreter's builder device functions, and put callable ones where candidates import them from."""
    builder = at.builder

    def create_extern_elementwise(
        self: Any, library: str, path: str, symbol: str, args: Any, result_type: Any, is_pure: bool
    ) -> Any:
        wanted = at.np_dtype(result_type)
        made = implementation(symbol)(*[arg.data for arg in args])
        return at.handle(convert(np.asarray(made), wanted), result_type.scalar)

    def create_inline_asm(self: Any, *_: Any) -> Any:
        raise NotImplementedError(
            "the CPU platform cannot run inline assembly (tl.inline_asm_elementwise): there is no GPU to execute it"
        )

    at.replace(builder, "create_extern_elementwise", create_extern_elementwise)
    at.replace(builder, "create_inline_asm", create_inline_asm)
    _mend_modules(at)


def _mend_modules(at: Internals) -> None:
    """Replace the vendors' functions by ones that need no `_semantic`, and the generic stubs by those."""
    found: dict[str, Any] = {}
    for vendor in ("hip", "cuda"):
        try:
            module = import_module(f"triton.language.extra.{vendor}.libdevice")
        except ModuleNotFoundError:
            continue  # a Triton built for one vendor only
        for name, member in list(vars(module).items()):
            if at.tl.core.is_builtin(member):
                found[name] = _bound(at, member)
                setattr(module, name, found[name])
    at.member(at.interpreter, "interpreter_builder")
    stubs = import_module("triton.language.extra.libdevice")
    for name, member in list(vars(stubs).items()):
        if callable(member) and getattr(member, "__module__", "") == stubs.__name__:
            setattr(stubs, name, found.get(name, _missing(name)))


def _bound(at: Internals, member: Any) -> Callable[..., Any]:
    """A device function with the interpreter's builder filled in."""
    if hasattr(at.interpreter, "interpreter_semantic"):
        filled = {"_semantic": at.interpreter.interpreter_semantic}
    else:
        filled = {"_builder": at.interpreter.interpreter_builder}

    def call(*args: Any, **kwargs: Any) -> Any:
        return member(*args, **{**kwargs, **filled})

    return call


def _missing(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"this Triton has no libdevice function {name} for any vendor")

    return call
