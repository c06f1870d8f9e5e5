"""The CUDA platform: NVIDIA devices."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from arena.platforms.gpu import GpuPlatform, RuntimeNames, gpu_facts, loaded_path
from arena.results.environment import DeviceFacts

LOCAL_BYTES = 4096
"""a thread; kernels of the corpus need 2,088 at most on `sm_90`. `device_gpu.h` has the same number"""


LIBRARY = "libcudart"


def error_name(code: int) -> str:
    """Return what the runtime that PyTorch has loaded calls an error, such as `cudaErrorMisalignedAddress`."""
    name = ctypes.CDLL(loaded_path(LIBRARY)).cudaGetErrorName
    name.restype = ctypes.c_char_p
    found: bytes | None = name(ctypes.c_int(code))
    return (found or b"").decode("ascii", "replace")


class CudaPlatform(GpuPlatform):
    """Triton's NVIDIA backend, and HIP sources through nvcc."""

    name = "cuda"
    names = RuntimeNames("cuda", LIBRARY, error_name=error_name, local_bytes=LOCAL_BYTES)

    def facts(self) -> DeviceFacts:
        """Facts of device 0 through PyTorch; the driver's version from the kernel module."""
        device = self.provider.describe()
        return gpu_facts("cuda", "nvidia", device, device.wave_size or 32, _driver())


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found.group(0) if found else ""
