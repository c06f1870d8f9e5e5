"""The order in which the programs of a launch run: a GPU may choose any. The command loop sets it for each call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from arena.platforms.cpu.triton.internals import Internals
from arena.processes.protocol import ASCENDING, DESCENDING, ENDS_ONLY, LAUNCH_ONLY

_current = [ASCENDING]
_whole: list[tuple[int, int, int]] = []
"""the grid of a launch of which only the first and the last program run"""


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


def runs_ends() -> bool:
    """Return whether of each launch only the first and the last program run."""
    return _current[0] == ENDS_ONLY


@contextmanager
def ends_of(grid: tuple[int, ...]) -> Iterator[tuple[int]]:
    """Yield the grid to count through, whose programs stand for the first and the last of this one."""
    x, y, z = (*grid, 1, 1)[:3]
    _whole[:] = [(x, y, z)]
    try:
        yield (min(2, x * y * z),)
    finally:
        _whole.clear()


@lru_cache(maxsize=8)
def permutation(order: int, count: int) -> Sequence[int]:
    """Return the numbers below `count` in this order."""
    if order in (ASCENDING, DESCENDING):
        return range(count) if order == ASCENDING else range(count - 1, -1, -1)
    return random.Random(order).sample(range(count), count)


def mend(at: Internals) -> None:
    """Have the interpreter, which counts through a grid, run another program at each step."""
    original = at.member(at.builder, "set_grid_idx")
    original_dim = at.member(at.builder, "set_grid_dim")

    def set_grid_dim(self: Any, *counted: int) -> None:
        original_dim(self, *(_whole[0] if _whole else counted))

    def set_grid_idx(self: Any, x: int, y: int, z: int) -> None:
        _, ny, nz = self.grid_dim
        count, turn = self.grid_dim[0] * ny * nz, (x * ny + y) * nz + z
        place = (0, count - 1)[x] if _whole else permutation(_current[0], count)[turn]
        original(self, place // (ny * nz), place // nz % ny, place % nz)

    at.replace(at.builder, "set_grid_dim", set_grid_dim)
    at.replace(at.builder, "set_grid_idx", set_grid_idx)
