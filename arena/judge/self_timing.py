"""A kernel timed against itself on a GPU: is it long enough to be measured, and is an A/A speedup 1?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from arena.judge.evaluate import Workshop
from arena.judge.performance import PerformanceCheck
from arena.judge.selection import declared_work
from arena.judge.side import Side
from arena.judge.subject import Program, Subject
from arena.model.check import Item, Outcome, Speed
from arena.model.record import Estimate, Split
from arena.model.task import Case, Task, arguments

LONG_MS = 0.02
"""two cases of each split take at least this long, unless the task is declared bound by latency"""
BAND = 0.02
"""an A/A speedup of a case of `LONG_MS` or more deviates from 1 by less"""
MOST_OF_ROOFLINE = 0.9
SLOWEST = 200.0
_PER_SPLIT = 2


@dataclass(frozen=True)
class Timed:
    """One case: the kernel alone, in ms, and its speedup over itself; None where it could not be told."""

    case: Case
    solo_ms: float
    speedup: Estimate | None

    @property
    def deviation(self) -> float:
        """Of the speedup from 1."""
        return abs(self.speedup.value - 1) if self.speedup else 0.0


class SelfTiming:
    """Times one task's kernels. `worst`: the greatest deviation of an A/A speedup from 1, once there is one."""

    def __init__(
        self,
        task: Task,
        shop: Workshop,
        fast: PerformanceCheck,
        make_subject: Callable[[Program], Subject],
        timeout_s: float,
    ) -> None:
        self._task, self._shop, self._fast = task, shop, fast
        self._make_subject, self._timeout_s = make_subject, timeout_s
        self.worst: float | None = None
        self.speeds: list[Speed] = []

    def items(self, program: Program, cases: Sequence[Case]) -> Iterator[Item]:
        """Whether the largest cases of each split are long enough, how fast they are, and how far A/A is from 1."""
        with self._side(program) as baseline, self._side(program) as candidate:
            timed = [self._time(baseline, candidate, case) for case in self._largest(cases)]
        yield long_enough(timed, self._task.latency_bound)
        longest = max(timed, key=lambda one: declared_work(arguments(self._task, one.case)))
        speed = self._speed("starting", longest.case, longest.solo_ms)
        self.speeds.append(speed)
        yield headroom(speed, self._task.exceptions.get("headroom", ""))
        yield pace(speed)
        told = [one for one in timed if one.solo_ms >= LONG_MS and one.speedup is not None]
        self.worst = max((one.deviation for one in told), default=None)
        yield same_speed(told)

    def note(self, expert: Program, cases: Sequence[Case]) -> None:
        """Time an expert alone on the largest case."""
        case = max(cases, key=lambda case: declared_work(arguments(self._task, case)))
        with self._side(expert) as side:
            solo_ms, _ = self._fast.solo(side, arguments(self._task, case))
        self.speeds.append(self._speed("expert", case, solo_ms.value))

    def _speed(self, kernel: str, case: Case, latency_ms: float) -> Speed:
        limits = self._shop.bench.limits(arguments(self._task, case))
        return Speed(kernel, case.label, latency_ms, limits.roofline_ms, limits.empty_call_ms)

    def _largest(self, cases: Sequence[Case]) -> list[Case]:
        by_work = sorted(cases, key=lambda case: declared_work(arguments(self._task, case)))
        return [c for split in Split for c in [case for case in by_work if case.split is split][-_PER_SPLIT:]]

    @contextmanager
    def _side(self, program: Program) -> Iterator[Side]:
        subject = self._make_subject(program)
        try:
            yield Side(subject, self._shop.bench.platform, self._timeout_s)
        finally:
            subject.discard()

    def _time(self, baseline: Side, candidate: Side, case: Case) -> Timed:
        worked_out = arguments(self._task, case)
        solo_ms, call_s = self._fast.solo(baseline, worked_out)
        baseline.unbind()
        _, timing = self._fast.compare(baseline, candidate, worked_out, (solo_ms, call_s))
        return Timed(case, solo_ms.value, timing.speedup if timing else None)


def same_speed(timed: Sequence[Timed]) -> Item:
    """A kernel is as fast as itself; an interval that is wide says that noise, and a narrow one that bias spoils it."""
    if not timed:
        return Item("A/A", Outcome.NOT_CHECKED, "no case is long enough")
    worst = max(timed, key=lambda one: one.deviation)
    assert worst.speedup is not None
    outcome = Outcome.PASSED if worst.deviation < BAND else Outcome.FAILED
    interval = f"{worst.speedup.value:.4f} [{worst.speedup.low:.4f}, {worst.speedup.high:.4f}] in {worst.case.id}"
    return Item("A/A", outcome, f"worst deviation from 1 is {worst.deviation:.2%} over {len(timed)} cases: {interval}")


def headroom(speed: Speed, declared: str) -> Item:
    """A starting kernel that reaches the roofline leaves nothing to gain, and the task must say so."""
    fraction = speed.roofline_fraction
    if fraction is None:
        return Item("headroom", Outcome.NOT_CHECKED, "the peaks of this device are not known")
    seen = f"{fraction:.2f} of the roofline in {speed.case}"
    if fraction <= MOST_OF_ROOFLINE:
        return Item("headroom", Outcome.PASSED, seen)
    if declared:
        return Item("headroom", Outcome.DECLARED, declared)
    return Item("headroom", Outcome.FAILED, f"{seen}: say under `exceptions: headroom` what is left to gain")


def pace(speed: Speed) -> Item:
    """A starting kernel far from any bound measures patience, not skill."""
    seen = f"{speed.latency_ms:.3g} ms, {speed.times_the_bound:.1f} times the larger of roofline and launch floor"
    outcome = Outcome.PASSED if speed.times_the_bound <= SLOWEST else Outcome.FAILED
    return Item("pace", outcome, f"{seen}, at most {SLOWEST:g} is allowed")


def long_enough(timed: Sequence[Timed], latency_bound: str) -> Item:
    """Two cases of each split must take `LONG_MS`, or the task must say why they cannot."""
    longest = max((one.solo_ms for one in timed), default=0.0)
    counts = {split: sum(one.case.split is split and one.solo_ms >= LONG_MS for one in timed) for split in Split}
    seen = (
        f"{counts[Split.SEEN]} seen and {counts[Split.HELDOUT]} held-out cases of 20 µs, the longest {longest:.3g} ms"
    )
    if min(counts.values()) >= 2:
        return Item("long enough", Outcome.PASSED, seen)
    if latency_bound:
        return Item("long enough", Outcome.DECLARED, latency_bound)
    return Item("long enough", Outcome.FAILED, f"{seen}: add larger ones, or say `latency_bound:` and why")
