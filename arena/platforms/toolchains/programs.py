"""Find the programs of ROCm and CUDA."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

_USUAL = (Path("/opt/rocm"), Path("/usr/local/cuda"))


def find_program(name: str, environment: Mapping[str, str] = os.environ, usual: Sequence[Path] = _USUAL) -> Path | None:
    """Find a vendor's program.

    Args:
        name: Such as `hipcc` or `ncu`.
        environment: Where `PATH`, `ROCM_PATH` and `CUDA_HOME` stand.
        usual: Folders where these toolkits are usually installed.

    Returns:
        The program on `PATH`, else below `ROCM_PATH` or `CUDA_HOME`, else in a usual folder; None where it is nowhere.
    """
    on_path = shutil.which(name, path=environment.get("PATH", os.defpath))
    if on_path is not None:
        return Path(on_path)
    named = (environment.get("ROCM_PATH"), environment.get("CUDA_HOME"))
    programs = (root / "bin" / name for root in (*(Path(folder) for folder in named if folder), *usual))
    return next((path for path in programs if os.access(path, os.X_OK) and path.is_file()), None)
