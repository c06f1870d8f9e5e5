"""Executors: where the judges of a run are, by name. `local`: on this machine; `ray`: on the nodes of a Ray cluster.

In: what a run wants of judges (`base.py`). Out: a `JudgePool`, which the runner asks in the same way whoever made it.
Adding one is a module here and a line in the table.
"""

from __future__ import annotations

from arena.errors import UsageError
from arena.runs.executors.base import Executor

NAMES = ("local", "ray")


def executor(name: str, address: str = "", accelerator: str = "") -> Executor:
    """Return an executor.

    Args:
        name: `local` or `ray`.
        address: of a Ray cluster; empty: one is started for the run.
        accelerator: the type of GPU to measure on, as Ray calls it, such as `H200`; empty: the only one there is.

    Raises:
        UsageError: there is no executor of that name, an argument is of no use to it, or its package is missing.
    """
    if name == "ray":
        from arena.runs.executors.ray_cluster import RayExecutor

        return RayExecutor(address, accelerator)
    if name not in NAMES:
        raise UsageError(f"unknown executor {name!r}; expected one of: {', '.join(NAMES)}")
    if address or accelerator:
        raise UsageError("--address and --accelerator are of use with --executor ray only")
    from arena.runs.executors.local import LocalExecutor

    return LocalExecutor()
