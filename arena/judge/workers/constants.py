"""Give a worker the constants of a case before it sees anything else of it, so that modules are constructed from them.

Used by the stages of correctness and of performance, right after they have bound buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arena.processes.protocol import LoadConstants

if TYPE_CHECKING:
    import torch

    from arena.judge.correctness.buffers import Sets
    from arena.judge.workers.watchdog import WatchedWorker
    from arena.platforms.base import Platform


def load_constants(
    worker: WatchedWorker, sets: Sets, constants: Mapping[str, torch.Tensor], platform: Platform, timeout_s: float
) -> None:
    """Write the constants into every set, and have the worker construct what it keeps; other tasks need nothing.

    Args:
        worker: to which the sets are bound; no input that counts may lie in them yet.
        sets: the buffers of the case.
        constants: values by name, each of the input's shape.
        platform: where the buffers lie.
        timeout_s: how long the worker may take.

    Raises:
        CandidateFailed: a module cannot be constructed, or does not take the state.
    """
    if not sets.arguments.task.takes_modules:
        return
    sets.write({name: values.expand(sets.count, *values.shape) for name, values in constants.items()})
    platform.synchronize()
    worker.ask(LoadConstants(), timeout_s)
