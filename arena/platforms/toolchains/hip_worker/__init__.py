"""The program that loads HIP candidates: built from `worker.hip` by the toolchain that builds the candidates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.errors import InfrastructureError, MachineError
from arena.platforms.toolchains.base import BuildFailed
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Recipe, Runner, build_cached, folder_texts

FOLDER = Path(__file__).parent
WORKER_SOURCE = FOLDER / "worker.hip"
WORKER_FLAGS = ("-std=c++17", "-O2")
_BUILD_S = 300.0


def build_worker(command: Sequence[str], identity: Mapping[str, str], cache: BuildCache, run: Runner) -> Path:
    """Return the program that `command` makes, from the cache where it is there.

    Raises `InfrastructureError` with the compiler's words where it does not build, `MachineError` where it cannot run.
    """
    sources = {f"source {name}": text for name, text in folder_texts(FOLDER, ("*.h", "*.hip")).items()}
    recipe = Recipe({}, command, "hip_worker", {**identity, **sources})
    built = build_cached(recipe, cache, timeout_s=_BUILD_S, run=run)
    if isinstance(built, BuildFailed):
        raise InfrastructureError(f"the worker for HIP candidates does not build; see `arena doctor`:\n{built.reason}")
    if not os.access(built.library, os.X_OK):
        raise MachineError(
            f"{built.library} cannot be executed: its file system is mounted noexec; set XDG_CACHE_HOME to a folder on "
            "another one"
        )
    return built.library
