"""The C code around Triton's kernels, compiled into its cache where no device is: what asks the driver, what launches.

Triton up to 3.6 compiles a launcher for each signature of a kernel; later versions have one for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_OF_VENDOR = {"nvidia": ("CudaUtils", "CudaLauncher"), "amd": ("HIPUtils", "HIPLauncher")}


class Launchers:
    """Builds what a worker with a device of one vendor would build at its first launches, as far as it can be here."""

    def __init__(self, vendor: str) -> None:
        """`vendor`: `amd` or `nvidia`, as Triton names its backends."""
        self._driver = import_module(f"triton.backends.{vendor}.driver")
        utils, self._launcher = _OF_VENDOR[vendor]
        self._built(getattr(self._driver, utils))

    def build(self, source: object, metadata: Any) -> None:
        """Build the launcher of a kernel, where each has its own."""
        if hasattr(self._driver, "make_launcher"):
            self._built(getattr(self._driver, self._launcher), source, metadata)

    @staticmethod
    def _built(kind: Any, *arguments: object) -> None:
        try:
            kind(*arguments)
        except Exception:  # without a driver's library, or a C compiler: whoever launches says so, or builds it
            return
