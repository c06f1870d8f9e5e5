"""Evaluations an hour, latencies, what devices did, and how two runs differ. Used by `tools/throughput.py`.

A few dozen evaluations say little of a rate: where a queue ends, devices have nothing to do, and one evaluation more or
less is several per cent. So two runs are compared by what the judge takes for the same tasks, and by the share of the
devices' time in which it evaluates while the queue is full.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STAGES = ("compile", "correctness", "performance", "heldout")


@dataclass(frozen=True)
class Judged:
    """One candidate: its latency, and the parts of it that the judge recorded, in seconds."""

    task: str
    status: str
    latency_s: float
    passes_s: float
    stages_s: dict[str, float]
    speedups: tuple[float, ...] = ()
    hold_one: int = 0
    """of how many of these the interval holds 1"""
    detail: str = ""
    """what was wrong with it"""
    done_s: float = 0.0
    """when it was judged, since the round began"""
    latencies_ms: dict[str, float] = field(default_factory=dict)
    """of the candidate, by timed case"""


@dataclass(frozen=True)
class Throughput:
    """What was measured on some devices."""

    round: int
    devices: int
    in_flight: int
    effort: str
    wall_s: float
    judged: tuple[Judged, ...]
    busy: tuple[tuple[float, float], ...] = ()
    """seconds since the round began, and the share of the last moments in which a device ran any kernel"""

    @property
    def an_hour(self) -> float:
        """Evaluations an hour."""
        return 3600 * len(self.judged) / self.wall_s

    @property
    def begun_s(self) -> float:
        """When the last candidate was begun: until then the queue was full."""
        return max(one.done_s - one.latency_s for one in self.judged)

    @property
    def steady_an_hour(self) -> float:
        """Evaluations an hour between the first that was judged and the last that was begun; nan for few."""
        first = min(one.done_s for one in self.judged)
        within = sum(first < one.done_s <= self.begun_s for one in self.judged)
        return 3600 * within / (self.begun_s - first) if within else math.nan

    @property
    def judging_s(self) -> dict[str, float]:
        """What the judge took for each task."""
        return {one.task: sum(one.stages_s.values()) for one in self.judged}

    @property
    def judging_full(self) -> float:
        """Share of the devices' time in which a judge evaluates while the queue is full; nan for few."""
        first = min(one.done_s for one in self.judged)
        spans = [(one.done_s - sum(one.stages_s.values()), one.done_s) for one in self.judged]
        within = sum(max(0.0, min(end, self.begun_s) - max(begin, first)) for begin, end in spans)
        return within / ((self.begun_s - first) * self.devices) if self.begun_s > first else math.nan

    @property
    def judging(self) -> float:
        """Share of the devices' time in which a judge evaluates."""
        return sum(sum(one.stages_s.values()) for one in self.judged) / (self.wall_s * self.devices)

    @property
    def timed(self) -> float:
        """Share of the devices' time that is timed passes, of baselines or of candidates."""
        return sum(one.passes_s for one in self.judged) / (self.wall_s * self.devices)

    @property
    def running(self) -> float:
        """Share of the devices' time in which they ran kernels while the queue was full; nan where nothing says so."""
        first = min(one.done_s for one in self.judged)
        within = [share for at, share in self.busy if first < at <= self.begun_s]
        return statistics.fmean(within) if within else math.nan

    @property
    def speedups(self) -> tuple[float, ...]:
        """Of all timed cases, ascending."""
        return tuple(sorted(speedup for one in self.judged for speedup in one.speedups))

    @property
    def latencies_ms(self) -> dict[tuple[str, str], float]:
        """Of each task's candidate, by timed case."""
        return {(one.task, case): ms for one in self.judged for case, ms in one.latencies_ms.items()}


def text(found: Throughput) -> str:
    """Return the summary as lines."""
    cuts = statistics.quantiles([one.latency_s for one in found.judged], n=20, method="inclusive")
    passed = sum(one.status == "passed" for one in found.judged)
    lines = [
        f"round {found.round}: {len(found.judged)} evaluations ({passed} passed), effort {found.effort}, "
        f"on {found.devices} device(s), "
        f"{found.in_flight} in flight for each: {found.wall_s:.1f} s",
        f"{found.an_hour:.0f} evaluations an hour, {found.an_hour / found.devices:.0f} for each device",
        f"{found.steady_an_hour:.0f} an hour from the first that was judged to the last that was begun, at "
        f"{found.begun_s:.0f} s: while the queue was full",
        f"latency: median {cuts[9]:.2f} s, 90 % within {cuts[17]:.2f} s, 95 % within {cuts[18]:.2f} s",
        f"judging {found.judging:.0%} of the devices' time, timed passes {found.timed:.0%}",
    ]
    if not math.isnan(found.running):
        lines.append(f"kernels run for {found.running:.0%} of the devices' time while the queue is full")
    for name in STAGES:
        seconds = [one.stages_s[name] for one in found.judged]
        lines.append(f"    {name:<12} median {statistics.median(seconds):6.2f} s, most {max(seconds):6.2f} s")
    if found.speedups:
        worst = max(found.speedups, key=lambda speedup: abs(math.log(speedup)))
        middle = statistics.median(found.speedups)
        held = sum(one.hold_one for one in found.judged)
        lines.append(f"speedups: median {middle:.4f}, furthest from 1 is {worst:.4f}, of {len(found.speedups)} cases")
        lines.append(f"{held} of their intervals hold 1")
    return "\n".join(lines)


def compared(found: Throughput, before: Throughput) -> str:
    """Say how far latencies, and evaluations an hour while the queue is full, are from those of another run."""
    return "\n".join((_latencies(found, before), _rates(found, before)))


def _latencies(found: Throughput, before: Throughput) -> str:
    known = before.latencies_ms
    ratios = {name: ms / known[name] for name, ms in found.latencies_ms.items() if known.get(name, 0) > 0 and ms > 0}
    if not ratios:
        return "no latency of a case is known from before"
    name = max(ratios, key=lambda name: abs(math.log(ratios[name])))
    middle, worst = statistics.median(ratios.values()), f"{ratios[name]:.4f} ({' '.join(name)})"
    return f"latencies over those before: median {middle:.4f}, furthest from 1 is {worst}, of {len(ratios)} cases"


def _rates(found: Throughput, before: Throughput) -> str:
    tasks = found.judging_s.keys() & before.judging_s.keys()
    if not tasks:
        return "no task was judged in both"
    longer = sum(found.judging_s[task] for task in tasks) / sum(before.judging_s[task] for task in tasks)
    times = found.devices * found.judging_full / (before.devices * before.judging_full * longer)
    return (
        f"while the queue is full: judging {found.judging_full:.1%} of {found.devices} device(s), before "
        f"{before.judging_full:.1%} of {before.devices}; {longer:.3f} times as long for the same {len(tasks)} tasks: "
        f"{times:.2f} times as many evaluations"
    )


def read(file: Path) -> list[Throughput]:
    """Return the rounds that `throughput.py --json` wrote, in order."""
    return [_of(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def _of(found: Mapping[str, Any]) -> Throughput:
    judged = tuple(Judged(**{**one, "speedups": tuple(one.get("speedups", ()))}) for one in found["judged"])
    return Throughput(**{**found, "judged": judged, "busy": tuple(map(tuple, found.get("busy", ())))})


def compared_files(before: Path, after: Path) -> str:
    """Return how the rounds in two files of `throughput.py --json` differ."""
    lines = []
    for old, new in zip(read(before), read(after), strict=False):
        if len(old.judged) > 1 and len(new.judged) > 1:
            lines.append(f"round {new.round}: {new.an_hour:.0f} evaluations an hour, before {old.an_hour:.0f}")
            lines.append(compared(new, old))
    return "\n".join(lines)
