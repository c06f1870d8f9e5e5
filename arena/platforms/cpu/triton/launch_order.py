"""The order in which the programs of a launch run: a GPU may choose any. The command loop sets it for each call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from arena.platforms.cpu.triton.internals import Internals
from arena.processes.protocol import ASCENDING, DESCENDING, LAUNCH_ONLY

_current = [ASCENDING]


@contextmanager
def launch_order(order: int) -> Iterator[None]:
    """Run the programs of every launch within in this order, as `Call.order` names it."""
    before, _current[0] = _current[0], order
    try:
        yield
    finally:
        _current[0] = before


def runs_nothing() -> bool:
    """Return whether launches are checked only."""
    return _current[0] == LAUNCH_ONLY


@lru_cache(maxsize=8)
def permutation(order: int, count: int) -> Sequence[int]:
    """Return the numbers below `count` in this order."""
    if order in (ASCENDING, DESCENDING):
        return range(count) if order == ASCENDING else range(count - 1, -1, -1)
    return random.Random(order).sample(range(count), count)


def mend(at: Internals) -> None:
    """Have the interpreter, which counts through a grid, run another program at each step."""
    original = at.member(at.builder, "set_grid_idx")

    def set_grid_idx(self: Any, x: int, y: int, z: int) -> None:
        _, ny, nz = self.grid_dim
        turn = (x * ny + y) * nz + z
        place = permutation(_current[0], self.grid_dim[0] * ny * nz)[turn]
        original(self, place // (ny * nz), place // nz % ny, place % nz)

    at.replace(at.builder, "set_grid_idx", set_grid_idx)
