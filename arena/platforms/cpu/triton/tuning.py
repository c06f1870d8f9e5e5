"""`@triton.autotune` without a device to tune on: every configuration runs once, and the first one is the best.

Between configurations the autotuner restores the arguments that the candidate names, as Triton does. A kernel that
changes another argument in place is wrong on a GPU too.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

from arena.platforms.cpu.triton.internals import Internals
from arena.platforms.cpu.triton.launch_order import runs_ends, runs_nothing

_autotuners: weakref.WeakSet[Any] = weakref.WeakSet()


def forget_choices() -> None:
    """Have every autotuner choose again at its next launch, as in a process that has launched nothing yet."""
    for autotuner in _autotuners:
        autotuner.cache.clear()


def _run_once(kernel_call: Callable[[], object], quantiles: Any = None) -> list[float]:
    """Run a configuration, and say of each that it takes the same time, so that the first wins.

    One that an assertion of the kernel's refuses is left out, as by the compiler.
    """
    try:
        kernel_call()
    except Exception as problem:
        if not isinstance(problem.__cause__, AssertionError):
            raise
        return [math.inf] * 3
    return [0.0] * 3


def _where_all_run(hook: Callable[..., object]) -> Callable[..., object]:
    """Leave a hook out where launches hardly run: it would copy arguments as large as a GPU's memory."""
    return lambda *args, **kwargs: None if runs_nothing() or runs_ends() else hook(*args, **kwargs)


def mend(at: Internals) -> None:
    """Make every autotuner benchmark with `_run_once`; keys, pruning, restoring and hooks stay Triton's own."""
    owner = at.member(at.autotuner, "Autotuner")
    at.member(owner, "_bench")
    original = at.member(owner, "__init__")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for option in ("warmup", "rep", "use_cuda_graph"):
            kwargs.pop(option, None)
        original(self, *args, **{**kwargs, "do_bench": _run_once})
        self.do_bench = _run_once
        self.cache_results = False
        self.pre_hook, self.post_hook = _where_all_run(self.pre_hook), _where_all_run(self.post_hook)
        _autotuners.add(self)

    at.replace(owner, "__init__", __init__)
