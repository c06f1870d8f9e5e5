"""First on `PYTHONPATH`: a CPU platform that answers as a device does that is gone, while the file `gone` is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import arena.platforms as platforms

_GONE = Path(os.environ["ARENA_UNPLUGGED"]) / "gone"
_whole = platforms.platform


def _pluggable(name: str) -> Any:
    device = _whole(name)

    class Pluggable(type(device)):  # type: ignore[misc]
        """Raises what a runtime raises for a device that fell off its bus."""

        def synchronize(self) -> None:
            if _GONE.exists():
                raise RuntimeError("cudaDeviceSynchronize returned error 100")

        def facts(self) -> Any:
            self.synchronize()
            return super().facts()

    return Pluggable()


platforms.platform = _pluggable
