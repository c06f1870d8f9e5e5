"""Platforms by name: device facts, shared buffers, events and clocks of `cpu`, `cuda` and `rocm`.

In: a name or `auto`. Out: a `Platform` (`base.py`), which the judge measures with. Adding one is a module here and a
line in the table.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from arena.errors import InfrastructureError, UsageError
from arena.extras import require
from arena.platforms.base import Platform

_PLATFORMS = {
    "rocm": "arena.platforms.rocm.platform:RocmPlatform",
    "cuda": "arena.platforms.cuda.platform:CudaPlatform",
    "cpu": "arena.platforms.cpu.platform:CpuPlatform",
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
    require("torch")
    import torch

    if torch.version.hip:
        from arena.platforms.rocm.platform import prepare_environment

        prepare_environment()  # looking for a device initialises HIP
    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def shares_by_socket(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this platform's buffers travel over an abstract Unix socket alone. Imports no torch."""
    if name == "cpu" or name == "cuda" or (name == "auto" and not built_for_hip()):
        return False
    from arena.platforms.rocm.platform import shares_by_socket

    return shares_by_socket(environment)


def built_for_hip() -> bool:
    """Return whether the installed PyTorch was built for ROCm, as its own `torch/version.py` says."""
    found = find_spec("torch")
    path = Path(found.origin).with_name("version.py") if found and found.origin else None
    return bool(path and path.is_file() and runpy.run_path(str(path)).get("hip"))


def device_count() -> int:
    """How many GPUs PyTorch sees; 0 where it has none. Opens no device."""
    require("torch")
    import torch

    return torch.cuda.device_count()


def show_only(device: int) -> None:
    """Hide all GPUs but one from this process and those it starts; called before anything looks for a device.

    On ROCm `ROCR_VISIBLE_DEVICES` stays as it is. It is applied first, and HIP's numbers count what it leaves.

    Args:
        device: counts among those that are visible, as the runtime's own numbers do.

    Raises:
        UsageError: there is no such device, or HIP is given one that ROCr hides.
    """
    import torch

    rocr = _listed("ROCR_VISIBLE_DEVICES") if torch.version.hip else []
    names = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if torch.version.hip else ("CUDA_VISIBLE_DEVICES",)
    name = next((name for name in names if _listed(name)), "ROCR_VISIBLE_DEVICES")
    visible = _listed(name) if name in names else [str(number) for number in range(len(rocr))]
    if visible and device >= len(visible):
        raise UsageError(f"there is no device {device}: {name} shows {len(visible)}")
    chosen = visible[device] if visible else str(device)
    if rocr and chosen.isdigit() and int(chosen) >= len(rocr):
        raise UsageError(
            f"{name} names device {chosen}, but ROCR_VISIBLE_DEVICES leaves {len(rocr)}; "
            f"it is applied first, so {name} must count from 0 among those"
        )
    os.environ[names[0]] = chosen


def _listed(variable: str) -> list[str]:
    """Return the devices that an environment variable lists, none where it is unset or empty."""
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


def here(name: str = "auto") -> Platform:
    """The platform asked for, `auto` being the best one; raises `InfrastructureError` where there is no such device."""
    best = detect()
    if name not in ("auto", "cpu", best):
        raise InfrastructureError(f"no {name} device here, PyTorch offers {best}; `arena doctor` says what is missing")
    return platform(best if name == "auto" else name)
