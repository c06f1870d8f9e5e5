"""Compare how the experts of the kept run are credited for noisy timings: before, now, and as measured.

    python tools/claims.py        writes reports/tables/noisy-credit.md from reports/full-h200/records.tar.xz

Before, a noisy timing counted min(1, lower bound). Now it counts its lower bound where that is above 1, else the
estimate, at most 1 (`CaseTiming.credit`).
"""

from __future__ import annotations

from statistics import geometric_mean
from typing import NamedTuple

from arena.reports.rows import EXPERT
from arena.results.record import CaseTiming, Split, Trial
from arena.runs.records import RunRecords

MOST = 1.2
"""tasks are listed whose credit changes by more than this factor"""


class Credit(NamedTuple):
    """The speedup of one expert over its timed seen cases, credited in three ways; `noisy` of `cases` are noisy."""

    task: str
    before: float
    now: float
    measured: float
    noisy: int
    cases: int


def credits(run: RunRecords) -> list[Credit]:
    """Return every expert of a run that passed, by task."""
    found = [(trial, timings(trial)) for trial in run.trials if trial.agent == EXPERT]
    return sorted(_credit(trial.task, timed) for trial, timed in found if timed)


def timings(trial: Trial) -> list[CaseTiming]:
    """Return the timings that a trial's speedup is made of."""
    cases = trial.evaluation.split(Split.SEEN) if trial.evaluation else ()
    return [case.timing for case in cases if case.timing is not None and case.credit is not None]


def before(timing: CaseTiming) -> float:
    """Return what a timing counted before."""
    return min(1.0, timing.speedup.low) if timing.noisy else timing.speedup.value


def page(run: RunRecords) -> str:
    """Return the comparison as Markdown."""
    found = credits(run)
    means = [geometric_mean(getattr(one, name) for one in found) for name in ("before", "now", "measured")]
    changed = [one for one in found if max(one.now / one.before, one.before / one.now) > MOST]
    lines = [
        "# Credit of noisy timings",
        "",
        f"Speedups of the {len(found)} experts over their timed seen cases, credited in three ways.",
        "",
        "| credited | a noisy timing counts | geometric mean over experts |",
        "| --- | --- | --- |",
        f"| before | min(1, lower bound) | {means[0]:.3f}× |",
        f"| now | its lower bound where that is above 1, else the estimate, at most 1 | {means[1]:.3f}× |",
        f"| as measured | its estimate | {means[2]:.3f}× |",
        "",
        f"The credit of {len(changed)} experts changes by more than {MOST - 1:.0%}:",
        "",
        "| task | before | now | as measured | noisy cases |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in sorted(changed, key=lambda one: one.before / one.now):
        shown = " | ".join(f"{value:.2f}×" for value in (one.before, one.now, one.measured))
        lines.append(f"| {one.task} | {shown} | {one.noisy} of {one.cases} |")
    return "\n".join(lines) + "\n"


def _credit(task: str, timed: list[CaseTiming]) -> Credit:
    one, two, three = (
        geometric_mean(values)
        for values in zip(*((before(t), t.credit.value, t.speedup.value) for t in timed), strict=True)
    )
    return Credit(task, one, two, three, sum(one.noisy for one in timed), len(timed))
