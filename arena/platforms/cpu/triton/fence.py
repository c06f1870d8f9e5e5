"""Where loads may read: between the arguments of a call lies memory that belongs to nobody.

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

    @staticmethod
    def around(first: int, num_bytes: int, parts: Sequence[tuple[int, int]]) -> Fence:
        """A fence around a buffer with parts as (first address, end)."""
        ordered = np.array(sorted(parts), np.uint64).reshape(-1, 2)
        return Fence(first, first + num_bytes, ordered[:, 0], ordered[:, 1])

    def check(self, addresses: Array, mask: Array, item_bytes: int) -> None:
        """Raise `IndexError` where an element in the buffer, but in none of its parts, is read."""
        wanted = np.broadcast_to(addresses, mask.shape)[mask].astype(np.uint64)
        inside = wanted[(wanted >= self.first) & (wanted < self.end)]
        if not inside.size:
            return
        part = np.searchsorted(self.starts, inside, side="right").astype(np.int64) - 1
        beyond = (part < 0) | (inside + np.uint64(item_bytes) > self.ends[np.maximum(part, 0)])
        if beyond.any():
            nearest = int(part[beyond][0])
            past = int(inside[beyond][0]) - int(self.ends[nearest]) if nearest >= 0 else 0
            where = f"the first {past} bytes past the end of an argument" if nearest >= 0 else "before every argument"
            raise IndexError(f"{int(beyond.sum())} elements read outside of every argument, {where}")


_current: list[Fence] = []


def put_up(fence: Fence | None) -> None:
    """From now on loads keep to this fence; None takes it down."""
    _current[:] = [] if fence is None else [fence]


def check(addresses: Array, mask: Array, item_bytes: int) -> None:
    """Hold a load against the fence, if there is one."""
    for fence in _current:
        fence.check(addresses, mask, item_bytes)
