"""Run waves to their end: groups of waves at one address go on together, part at branches and meet again.

ISA guide: "Work-groups and barriers". The group with the lowest address runs first, which brings waves together
again after a branch. Now and then the group that waited longest runs, so that waves may wait for one another. In the
other orders each wave of a workgroup runs alone until it waits, which shows results that need a missing barrier.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.program import BARRIER, END, CompiledCode
from arena.platforms.cpu.amd_isa.waves import Waves, merge

Array = Any
TOGETHER, FIRST_WAVE_FIRST, LAST_WAVE_FIRST = 0, 1, -1
"""orders in which the waves of a workgroup run between two barriers"""
_FAIRNESS = 512
"""blocks after which the group that waited longest has its turn"""


class Execution:
    """All waves of one batch of workgroups, which is resident at once."""

    def __init__(
        self, program: CompiledCode, waves: Waves, entry: int, deadline: float, ranks: Array | None = None
    ) -> None:
        """`deadline`: the value of `time.monotonic()` to stop at; `ranks`: int64 [waves], the lowest runs first."""
        self._program, self._deadline = program, deadline
        self._live = waves.count
        waves.pc = entry
        self._ready: list[Waves] = [waves]
        if ranks is not None:
            self._ready = [waves.take(np.nonzero(ranks == rank)[0]) for rank in np.unique(ranks)]
            for rank, group in enumerate(self._ready):
                group.rank = rank
        self._parked: list[Waves] = []
        self._turns = 0

    def run(self) -> None:
        """Run until every wave has ended. Raises `NotModelled` and `MachineFault`."""
        with np.errstate(all="ignore"):
            while self._ready or self._parked:
                self._turn()

    def _turn(self) -> None:
        if not self._ready:
            self._release(everyone=True)
        group = self._next()
        while True:
            self._turns += 1
            if self._turns % _FAIRNESS == 0 and time.monotonic() > self._deadline:
                raise NotModelled("the execution does not end in time")
            block = self._program.block(group.pc)
            for step in block.steps:
                step(group)
            to = block.leave(group)
            if type(to) is int:
                group.pc = to
                if not self._ready:
                    continue
                self._ready.append(group)
            elif to is END:
                self._live -= group.count
            elif to is BARRIER:
                group.pc = block.following
                if group.count == self._live:
                    continue  # every wave is here
                self._parked.append(group)
            else:
                self._part(group, to)
            return

    def _next(self) -> Waves:
        """Take the groups at the lowest address as one, or in turn the one that waited longest."""
        if len(self._ready) == 1:
            return self._ready.pop()
        if self._turns % _FAIRNESS == _FAIRNESS - 1:
            self._release(everyone=False)
            chosen = _key(self._ready[0])
        else:
            chosen = min(map(_key, self._ready))
        together = [group for group in self._ready if _key(group) == chosen]
        self._ready = [group for group in self._ready if _key(group) != chosen]
        return together[0] if len(together) == 1 else merge(together)

    def _part(self, group: Waves, to: object) -> None:
        places = np.asarray(to)
        for place in np.unique(places):
            part = group.take(np.nonzero(places == place)[0])
            part.pc = int(place)
            self._ready.append(part)

    def _release(self, *, everyone: bool) -> None:
        """Let workgroups go on that are complete at the barrier: all of them where nothing else can run."""
        if not self._parked:
            return
        parked = [merge(same) for same in _by_key(self._parked)]
        self._parked = []
        if everyone:
            self._ready += parked
            return
        running = np.concatenate([group.workgroup for group in self._ready])
        for group in parked:
            waits = np.isin(group.workgroup, running)
            for chosen, into in ((waits, self._parked), (~waits, self._ready)):
                if chosen.any():
                    into.append(group.take(np.nonzero(chosen)[0]))


def _key(group: Waves) -> tuple[int, int]:
    return group.rank, group.pc


def _by_key(groups: list[Waves]) -> list[list[Waves]]:
    found: dict[tuple[int, int], list[Waves]] = {}
    for group in groups:
        found.setdefault(_key(group), []).append(group)
    return list(found.values())
