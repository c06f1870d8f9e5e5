"""The time and cost of trials that are left, from trials that are recorded. Used by `arena run` before it starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from arena.errors import ArenaError
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs.records import HEAD, read_head, read_run
from arena.runs.runner import TrialKey


@dataclass(frozen=True)
class TimeLeft:
    """What trials will take one after the other, if they take what recorded ones did."""

    trials: int
    seconds: float
    cost_usd: float
    recorded: int
    """trials that the estimate rests on"""
    unknown: int
    """trials of agents without a recorded one, which are left out"""

    def __str__(self) -> str:
        """Say it in one line."""
        if not self.recorded:
            return f"{self.trials} trials; no estimate: no trial of these agents is recorded"
        cost = f" and {self.cost_usd:.2f} USD" if self.cost_usd else ""
        left_out = f"; {self.unknown} of agents without a record are not counted" if self.unknown else ""
        takes = f"about {_duration(self.seconds)}{cost} one after the other"
        return f"{self.trials} trials, {takes}, by {self.recorded} recorded trials{left_out}"


def estimate(missing: Sequence[TrialKey], recorded: Iterable[Trial]) -> TimeLeft:
    """Return what trials will take: the median of the same agent on the same task, else of the agent on any task."""
    known = [trial for trial in recorded if trial.status is not Status.HARNESS_ERROR]
    seconds, costs = defaultdict(list), defaultdict(list)
    for trial in known:
        for key in ((trial.agent, trial.task), (trial.agent, "")):
            seconds[key].append(trial.seconds)
            costs[key].append((trial.session.cost_usd or 0.0) if trial.session else 0.0)
    total_s = cost = 0.0
    used, unknown = set[str](), 0
    for agent, task, _ in missing:
        key = (agent, task) if (agent, task) in seconds else (agent, "")
        if key not in seconds:
            unknown += 1
            continue
        total_s += median(seconds[key])
        cost += median(costs[key])
        used.add(agent)
    return TimeLeft(len(missing), total_s, cost, sum(trial.agent in used for trial in known), unknown)


def recorded_trials(runs: Path, platform: str, effort: str) -> list[Trial]:
    """Return the trials of all runs in a folder that were judged on this platform with this effort."""
    found: list[Trial] = []
    for head in sorted(runs.glob(f"*/{HEAD}")):
        try:
            info = read_head(head.parent)
            if info.effort == effort and platform in ("auto", info.environment.device.platform):
                found += read_run(head.parent).trials
        except ArenaError:
            continue  # `arena runs` shows it
    return found


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
