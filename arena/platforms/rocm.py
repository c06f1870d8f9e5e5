"""The ROCm platform: AMD devices. Facts come from hip-python where it is installed, else from PyTorch alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from arena.model.environment import DeviceFacts
from arena.platforms.gpu import GpuPlatform, RuntimeNames, gpu_facts


@dataclass(frozen=True)
class HipAnswer:
    """What hip-python says: how many devices, or why none."""

    devices: int
    detail: str
    driver: str = ""
    arch: str = ""
    wave_size: int = 64


class RocmPlatform(GpuPlatform):
    """Triton's AMD backend, and HIP sources through hipcc."""

    name = "rocm"
    names = RuntimeNames("hip", "libamdhip64.so")

    def facts(self) -> DeviceFacts:
        """Facts of device 0."""
        import torch

        answer = ask_hip()
        arch = answer.arch or str(torch.cuda.get_device_properties(0).gcnArchName).split(":", 1)[0]
        wave_size = answer.wave_size if answer.arch else (64 if arch.startswith("gfx9") else 32)
        return gpu_facts("rocm", "amd", arch, wave_size, answer.driver)


def ask_hip() -> HipAnswer:
    """Ask the HIP runtime through hip-python; every way of not having a device is an answer, not an exception."""
    try:
        hip: Any = import_module("hip").hip
    except (ImportError, AttributeError, RuntimeError, OSError) as problem:
        return HipAnswer(0, f"hip-python cannot be imported ({problem})")
    error, count = _ask(hip.hipGetDeviceCount)
    if error:
        return HipAnswer(0, error)
    if count == 0:
        return HipAnswer(0, "the HIP runtime sees no device")
    properties = hip.hipDeviceProp_t()
    error, _ = _ask(lambda: (*hip.hipGetDeviceProperties(properties, 0), 0))
    if error:
        return HipAnswer(0, error)
    driver = str(_ask(hip.hipDriverGetVersion)[1])
    arch = properties.gcnArchName.decode().split(":", 1)[0]
    return HipAnswer(count, properties.name.decode(), driver, arch, int(properties.warpSize))


def _ask(function: object) -> tuple[str, int]:
    """Call a hip-python function that answers (error, value)."""
    assert callable(function)
    try:
        code, value = function()
    except (RuntimeError, OSError) as problem:
        return str(problem), 0
    return ("", int(value)) if int(code) == 0 else (str(getattr(code, "name", code)), 0)
