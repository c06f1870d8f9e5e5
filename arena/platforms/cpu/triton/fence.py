"""Bound where loads may read, and sometimes stores write: between the arguments of a call lies memory of nobody.

A load out of bounds is an error on a device too, though often a silent one. Memory that a candidate allocated itself is
not looked after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arena.platforms.cpu.triton.internals import Array


@dataclass(frozen=True)
class Fence:
    """A buffer by its first address and its end, and the parts of it that may be read: addresses, sorted."""

    first: int
    end: int
    starts: Array
    ends: Array
    names: tuple[str, ...]

    @staticmethod
    def around(first: int, num_bytes: int, parts: Sequence[tuple[int, int, str]]) -> Fence:
        """A fence around a buffer with parts as (first address, end, name of the argument)."""
        ordered = sorted(parts)
        places = np.array([part[:2] for part in ordered], np.uint64).reshape(-1, 2)
        return Fence(first, first + num_bytes, places[:, 0], places[:, 1], tuple(part[2] for part in ordered))

    def check(self, addresses: Array, mask: Array, item_bytes: int, *, stores: bool = False) -> None:
        """Raise `IndexError` where an element in the buffer, but in none of its parts, is read, or stored."""
        wanted = np.broadcast_to(addresses, mask.shape)[mask].astype(np.uint64)
        inside = wanted[(wanted >= self.first) & (wanted < self.end)]
        if not inside.size:
            return
        part = np.searchsorted(self.starts, inside, side="right").astype(np.int64) - 1
        beyond = (part < 0) | (inside + np.uint64(item_bytes) > self.ends[np.maximum(part, 0)])
        if beyond.any():
            first, nearest = int(inside[beyond][0]), int(part[beyond][0])
            done, todo = ("stored", "store may write") if stores else ("read", "load may read")
            raise IndexError(
                f"{int(beyond.sum())} elements of {item_bytes} bytes were {done} outside of every argument, the first "
                f"{self._where(first, nearest, item_bytes)}; mask what a {todo}"
            )

    def _where(self, address: int, nearest: int, item_bytes: int) -> str:
        """Return where an element lies that is in no part, by the part before it or, if that is nearer, behind it."""
        after = nearest + 1
        before = int(self.starts[after]) - address if after < len(self.names) else self.end
        if nearest >= 0 and address - int(self.ends[nearest]) < before:
            ahead = (address - int(self.ends[nearest])) // item_bytes + 1
            return f"{ahead} after the last element of `{self.names[nearest]}`"
        return f"{before // item_bytes} before the first element of `{self.names[after]}`"


_current: list[Fence] = []


def put_up(fence: Fence | None) -> None:
    """From now on loads keep to this fence; None takes it down."""
    _current[:] = [] if fence is None else [fence]


def check(addresses: Array, mask: Array, item_bytes: int, *, stores: bool = False) -> None:
    """Hold a load, or a store, against the fence, if there is one."""
    for fence in _current:
        fence.check(addresses, mask, item_bytes, stores=stores)
