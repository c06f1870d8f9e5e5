"""The gain of a trial, and the order of agents by it. Why so: docs/evaluate/measures.md.

Every table of agents is sorted by `best_first`. Intervals do not sort; they mark neighbours whose difference is not
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from arena.results.outcome import Outcome
from arena.results.record import Estimate

_T = TypeVar("_T")


class Standing(NamedTuple):
    """The numbers that rank an agent. Shares are of planned trials.

    `gain`: geometric mean over planned trials of what each gained, 1 where nothing was timed.
    """

    agent: str
    gain: float
    solved: float
    overfit: float
    failed: float
    ranked: bool = True
    """whether it has a rank: calibration agents have none"""


def gained(outcome: Outcome, speedup: Estimate | None) -> Estimate | None:
    """Return the speedup of a trial where it counts as a gain: solved, and surely faster than the baseline.

    None for every other trial, which counts as 1: its user keeps the baseline.

    Args:
        outcome: of the trial.
        speedup: geometric mean over its timed seen cases, with its 95 % interval.
    """
    return speedup if outcome.solves and speedup is not None and speedup.low > 1 else None


def best_first(things: Iterable[_T], standing: Callable[[_T], Standing]) -> list[_T]:
    """Return what belongs to agents with that of the best agent first, that of calibration agents last.

    By gain, then by the share solved, then by fewer overfit and fewer failed trials; ties by name.
    """
    return sorted(things, key=lambda thing: _key(standing(thing)))


def is_best(standing: Standing) -> bool:
    """Return whether an agent may be called best where it comes first: it has a rank, and solved something."""
    return standing.ranked and standing.solved > 0


def _key(one: Standing) -> tuple[bool, float, float, float, float, str]:
    return not one.ranked, -one.gain, -one.solved, one.overfit, one.failed, one.agent
