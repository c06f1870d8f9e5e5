"""`torch.utils.cpp_extension` in the worker of a module: extensions are compiled elsewhere, and found by their content.

A stand-in module takes its place before the candidate is loaded. A call of `load_inline` or `load` returns the finished
extension where the judge has given one, and otherwise ends what the worker was told to do: it then names the extension,
the judge has it compiled by confined compilers, and another worker begins anew.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from arena.processes.protocol import Extension, ExtensionWanted

_NAME = "torch.utils.cpp_extension"
_CUDA_SUFFIX = ".cu"
_TEXT_BYTES = 1 << 20
_asked: list[Extension] = []


class NotBuilt(BaseException):
    """An extension that the worker was not given. No `Exception`: a candidate's fallback is not asked for."""

    def __init__(self, extension: Extension) -> None:
        super().__init__(extension.name)
        self.extension = extension


def wanted() -> ExtensionWanted | None:
    """Return the extension that was asked for in vain, also where the candidate has caught `NotBuilt`."""
    return ExtensionWanted(_asked[0]) if _asked else None


def install(built: Mapping[str, str]) -> None:
    """Put the stand-in in the place of `torch.utils.cpp_extension`, for good.

    Args:
        built: libraries by the keys of what they were made of.
    """
    import torch.utils

    stand_in = ModuleType(_NAME, "Extensions that are already compiled.")
    loaded: dict[str, ModuleType] = {}

    def found(extension: Extension) -> ModuleType:
        key = extension.key
        if key not in built:
            _asked.append(extension)
            raise NotBuilt(extension)
        if key not in loaded:
            loaded[key] = _imported(extension.name, built[key])
        return loaded[key]

    def load_inline(
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        sycl_sources: object = None,
        functions: str | Sequence[str] | Mapping[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: object = None,
        extra_ldflags: Sequence[str] | None = None,
        **_of_the_build: Any,
    ) -> ModuleType:
        return found(
            Extension(
                name,
                _texts(cpp_sources),
                _texts(cuda_sources),
                _texts(functions),
                _flags(extra_cflags),
                _flags(extra_cuda_cflags),
                _flags(extra_ldflags),
            )
        )

    def load(
        name: str,
        sources: str | Sequence[str],
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: object = None,
        extra_ldflags: Sequence[str] | None = None,
        **_of_the_build: Any,
    ) -> ModuleType:
        files = [Path(file) for file in ([sources] if isinstance(sources, str | Path) else sources)]
        cpp = tuple(_read(file) for file in files if file.suffix != _CUDA_SUFFIX)
        cuda = tuple(_read(file) for file in files if file.suffix == _CUDA_SUFFIX)
        return found(
            Extension(
                name,
                cpp,
                cuda,
                (),
                _flags(extra_cflags),
                _flags(extra_cuda_cflags),
                _flags(extra_ldflags),
                inline=False,
            )
        )

    stand_in.__dict__.update(
        load_inline=load_inline,
        load=load,
        CUDA_HOME=None,
        is_ninja_available=lambda: True,
        verify_ninja_availability=lambda: None,
        include_paths=lambda *_args, **_kwargs: [],
    )
    sys.modules[_NAME] = stand_in
    torch.utils.cpp_extension = stand_in  # type: ignore[attr-defined, unused-ignore]


def _imported(name: str, library: str) -> ModuleType:
    """Import a finished extension; its library's own name for the module is always `extension`."""
    spec = importlib.util.spec_from_file_location("extension", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.setdefault(name, module)
    return module


def _texts(given: str | Iterable[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given or ()))


def _flags(given: Iterable[str] | None) -> tuple[str, ...]:
    """Return flags one by one: PyTorch hands them to a shell, which splits them."""
    return tuple(part for flag in given or () for part in shlex.split(str(flag)))


def _read(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as text:
        return text.read(_TEXT_BYTES)
