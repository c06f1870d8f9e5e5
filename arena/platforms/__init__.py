"""Platforms by name: device facts, shared buffers, events and clocks of `cpu`, `cuda` and `rocm`.

In: a name or `auto`. Out: a `Platform` (`base.py`), which the judge measures with. Adding one is a module here and a
line in the table.
"""

from __future__ import annotations

import os
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


def known(name: str) -> str:
    """Return `name`; raises `UsageError` unless it is that of a platform or `auto`. Looks for no device."""
    if name not in ("auto", *NAMES):
        raise UsageError(f"unknown platform {name!r}; expected one of: auto, {', '.join(sorted(NAMES))}")
    return name


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


def device_count() -> int:
    """How many GPUs PyTorch sees; 0 where it has none. Opens no device."""
    import torch

    return torch.cuda.device_count()


def show_only(device: int) -> None:
    """Hide all GPUs but one from this process and those it starts; called before anything looks for a device.

    `device` counts among those that are visible, as the runtime's own numbers do.
    """
    import torch

    variable = "HIP_VISIBLE_DEVICES" if torch.version.hip else "CUDA_VISIBLE_DEVICES"
    visible = [name for name in os.environ.get(variable, "").split(",") if name.strip()]
    if visible and device >= len(visible):
        raise UsageError(f"there is no device {device}: {variable} shows {len(visible)}")
    os.environ[variable] = visible[device] if visible else str(device)


def here(name: str = "auto") -> Platform:
    """The platform asked for, `auto` being the best one; raises `InfrastructureError` where there is no such device."""
    best = detect()
    if name not in ("auto", "cpu", best):
        raise InfrastructureError(f"no {name} device here, PyTorch offers {best}; `arena doctor` says what is missing")
    return platform(best if name == "auto" else name)
