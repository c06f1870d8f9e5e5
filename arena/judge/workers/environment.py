"""Environment variables of processes that run a candidate."""

from __future__ import annotations

import os

from arena.platforms.rocm.platform import VARIABLES
from arena.processes.python_child import python_environment
from arena.processes.sandbox import confinement, network

_KEPT = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "ROCM_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    *VARIABLES,
    confinement.SWITCH,
    network.IN_FORCE,
)


def clean_environment(*, interprets: bool) -> dict[str, str]:
    """Return what a worker may know of the outside: where programs and device libraries are, and nothing else."""
    environment = python_environment({name: os.environ[name] for name in _KEPT if name in os.environ})
    environment.update(
        LANG="C.UTF-8",
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        TRITON_DEFAULT_FP_FUSION="1",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONUNBUFFERED="1",
    )
    if interprets:
        environment["TRITON_INTERPRET"] = "1"
    return environment
