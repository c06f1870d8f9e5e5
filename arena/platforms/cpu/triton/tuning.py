"""`@triton.autotune` without a device to tune on: the first configuration that survives pruning is the best one."""

from __future__ import annotations

from typing import Any

from arena.platforms.cpu.triton.internals import Internals


def _no_benchmark(kernel_call: Any, quantiles: Any = None) -> list[float]:
    """Every configuration takes the same time, so the first wins; the kernel is not run to find out."""
    return [0.0, 0.0, 0.0]


def mend(at: Internals) -> None:
    """Make every autotuner benchmark with `_no_benchmark`; keys, pruning and hooks stay Triton's own."""
    owner = at.member(at.autotuner, "Autotuner")
    at.member(owner, "_bench")
    original = at.member(owner, "__init__")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for option in ("warmup", "rep", "use_cuda_graph"):
            kwargs.pop(option, None)
        original(self, *args, **{**kwargs, "do_bench": _no_benchmark})
        self.do_bench = _no_benchmark
        self.cache_results = False

    at.replace(owner, "__init__", __init__)
