"""Platforms by name. Adding one is a module here and a line in the table."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from arena.errors import InfrastructureError, UsageError
from arena.platforms.base import Platform

_PLATFORMS = {
    "rocm": "arena.platforms.rocm:RocmPlatform",
    "cuda": "arena.platforms.cuda:CudaPlatform",
    "cpu": "arena.platforms.cpu:CpuPlatform",
}
NAMES = tuple(_PLATFORMS)


def platform(name: str) -> Platform:
    """The platform called `name`."""
    if name not in _PLATFORMS:
        raise UsageError(f"unknown platform {name!r}; expected one of: {', '.join(NAMES)}")
    module, attribute = _PLATFORMS[name].split(":")
    return cast(Platform, getattr(import_module(module), attribute)())


def detect() -> str:
    """The best platform PyTorch can use here: `rocm`, `cuda`, else `cpu`. Imports torch; touches no device memory."""
    import torch

    if torch.version.hip:
        from arena.platforms.rocm import choose_ipc_mode

        choose_ipc_mode()  # looking for a device initialises HIP
    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def here(name: str = "auto") -> Platform:
    """The platform asked for, `auto` being the best one; raises `InfrastructureError` where there is no such device."""
    best = detect()
    if name not in ("auto", "cpu", best):
        raise InfrastructureError(f"no {name} device here, PyTorch offers {best}; `arena doctor` says what is missing")
    return platform(best if name == "auto" else name)
