"""A kernel timed against itself on a GPU: is it long enough to be measured, and is an A/A speedup 1?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import geometric_mean

from arena.judge.evaluate import JudgeContext
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import TimedProgram
from arena.judge.selection import declared_work
from arena.judge.workers.program import Program, WorkerProgram
from arena.results.check import CheckItem, CheckOutcome, Speed
from arena.results.messages import message
from arena.results.record import LONG_MS, Estimate, Split
from arena.task.definition import Case, Task, arguments
from arena.task.rules import reason_for

BAND = 0.02
"""an A/A speedup of a case of `LONG_MS` or more deviates from 1 by less: the mean of two, where one alone does not"""
MOST_OF_ROOFLINE = 0.9
SLOWEST = 200.0
_PER_SPLIT = 2


@dataclass(frozen=True)
class Timed:
    """One case: the kernel alone, in ms, and its speedups over itself, one for each pair of workers it was timed in."""

    case: Case
    isolated_ms: float
    speedups: tuple[Estimate, ...]

    @property
    def counts(self) -> bool:
        """Return whether it is long enough for its speedup to be held against 1."""
        return self.isolated_ms >= LONG_MS and bool(self.speedups)

    @property
    def deviation(self) -> float:
        """Of the speedups' geometric mean from 1."""
        return abs(geometric_mean(speedup.value for speedup in self.speedups) - 1)


class SelfTiming:
    """Times one task's kernels. `worst`: the greatest deviation of an A/A speedup from 1, once there is one."""

    def __init__(
        self,
        task: Task,
        context: JudgeContext,
        fast: PerformanceCheck,
        make_worker_program: Callable[[Program], WorkerProgram],
        timeout_s: float,
    ) -> None:
        self._task, self._context, self._fast = task, context, fast
        self._make_worker_program, self._timeout_s = make_worker_program, timeout_s
        self.worst: float | None = None
        self.speeds: list[Speed] = []

    def items(self, program: Program, cases: Sequence[Case]) -> Iterator[CheckItem]:
        """Yield whether timed cases are long enough, how fast the kernel is, and how far its A/A speedups are from 1.

        Of each split the largest timed cases have A/A speedups, the others a latency alone.
        """
        cases = [case for case in cases if case.timed] or cases
        largest = self._largest(cases)
        timed = self._timed(program, largest)
        alone = self._alone(program, [case for case in cases if case not in largest])
        yield long_enough([*timed, *alone], self._task.latency_bound)
        longest = max(timed, key=lambda one: declared_work(arguments(self._task, one.case)))
        speed = self._speed("starting", longest.case, longest.isolated_ms)
        self.speeds.append(speed)
        yield headroom(speed, reason_for(self._task.exceptions, "headroom"))
        yield pace(speed)
        decided = self._remeasured(program, [one for one in timed if one.counts])
        self.worst = max((one.deviation for one in decided), default=None)
        yield same_speed(decided)

    def note(self, expert: Program, cases: Sequence[Case]) -> None:
        """Time an expert alone on the largest timed case."""
        timed_cases = [case for case in cases if case.timed] or cases
        case = max(timed_cases, key=lambda case: declared_work(arguments(self._task, case)))
        (timed,) = self._alone(expert, [case])
        self.speeds.append(self._speed("expert", case, timed.isolated_ms))

    def _speed(self, kernel: str, case: Case, latency_ms: float) -> Speed:
        limits = self._context.timer.limits(arguments(self._task, case))
        return Speed(kernel, case.label, latency_ms, limits.roofline_ms, limits.empty_call_ms)

    def _largest(self, cases: Sequence[Case]) -> list[Case]:
        by_work = sorted(cases, key=lambda case: declared_work(arguments(self._task, case)))
        return [c for split in Split for c in [case for case in by_work if case.split is split][-_PER_SPLIT:]]

    @contextmanager
    def _side(self, program: Program) -> Iterator[TimedProgram]:
        worker_program = self._make_worker_program(program)
        try:
            yield TimedProgram(worker_program, self._context.timer.platform, self._timeout_s)
        finally:
            worker_program.discard()

    def _timed(self, program: Program, cases: Sequence[Case]) -> list[Timed]:
        """Each case, in two new workers."""
        with self._side(program) as baseline, self._side(program) as candidate:
            return [self._time(baseline, candidate, case) for case in cases]

    def _alone(self, program: Program, cases: Sequence[Case]) -> list[Timed]:
        """Each case, in one worker: its latency without an A/A speedup."""
        if not cases:
            return []
        with self._side(program) as side:
            return [Timed(case, self._isolated(side, case)[0].value, ()) for case in cases]

    def _isolated(self, side: TimedProgram, case: Case) -> tuple[Estimate, float]:
        return self._fast.isolated(side, arguments(self._task, case))

    def _remeasured(self, program: Program, timed: Sequence[Timed]) -> list[Timed]:
        """The same, with those outside the band timed once more, in other workers.

        What a process has for itself, a scratch buffer's place or what its autotuner found, can make it a few
        hundredths slower than the same kernel elsewhere. What the measurement adds is the same in all pairs.
        """
        outside = [one.case for one in timed if one.deviation >= BAND]
        again = {one.case.id: one.speedups for one in self._timed(program, outside)} if outside else {}
        return [replace(one, speedups=one.speedups + again.get(one.case.id, ())) for one in timed]

    def _time(self, baseline: TimedProgram, candidate: TimedProgram, case: Case) -> Timed:
        isolated = self._isolated(baseline, case)
        _, timing = self._fast.compare(baseline, candidate, arguments(self._task, case), isolated)
        return Timed(case, isolated[0].value, (timing.speedup,) if timing else ())


def same_speed(timed: Sequence[Timed]) -> CheckItem:
    """A kernel is as fast as itself; an interval that is wide says that noise, and a narrow one that bias spoils it."""
    if not timed:
        return CheckItem("A/A", CheckOutcome.NOT_CHECKED, message("check_self_no_case"))
    worst = max(timed, key=lambda one: one.deviation)
    twice = [one for one in timed if len(one.speedups) > 1 and one is not worst]
    intervals = "; timed twice: ".join([_intervals(worst), *map(_intervals, twice)])
    if worst.deviation < BAND:
        seen = f"worst deviation from 1 is {worst.deviation:.2%} over {len(timed)} cases: {intervals}"
        return CheckItem("A/A", CheckOutcome.PASSED, seen)
    values = {"worst": worst.deviation, "cases": len(timed), "most": BAND, "intervals": intervals}
    return CheckItem("A/A", CheckOutcome.FAILED, message("check_self_differs", **values))


def _intervals(timed: Timed) -> str:
    """Of every pair of workers, and of which case."""
    said = " and ".join(f"{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]" for one in timed.speedups)
    return f"{said} in {timed.case.id}"


def headroom(speed: Speed, declared: str) -> CheckItem:
    """A baseline kernel that reaches the roofline leaves nothing to gain, and the task must say so."""
    fraction = speed.roofline_fraction
    if fraction is None:
        return CheckItem("headroom", CheckOutcome.NOT_CHECKED, message("check_headroom_unknown"))
    seen = f"{fraction:.2f} of the roofline in {speed.case}"
    if fraction <= MOST_OF_ROOFLINE:
        return CheckItem("headroom", CheckOutcome.PASSED, seen)
    if declared:
        return CheckItem("headroom", CheckOutcome.DECLARED, declared)
    detail = message("check_no_headroom", found=fraction, case=speed.case, most=MOST_OF_ROOFLINE)
    return CheckItem("headroom", CheckOutcome.FAILED, detail)


def pace(speed: Speed) -> CheckItem:
    """A baseline kernel far from any bound measures patience, not skill."""
    if speed.times_the_bound <= SLOWEST:
        seen = f"{speed.latency_ms:.3g} ms, {speed.times_the_bound:.1f} times the larger of roofline and launch floor"
        return CheckItem("pace", CheckOutcome.PASSED, f"{seen}, at most {SLOWEST:g} is allowed")
    times = speed.times_the_bound
    detail = message("check_kernel_slow", found_ms=speed.latency_ms, times=times, most=SLOWEST)
    return CheckItem("pace", CheckOutcome.FAILED, detail)


def long_enough(timed: Sequence[Timed], latency_bound: str) -> CheckItem:
    """Every timed case must take `LONG_MS`, or the task must say that it is bound by latency."""
    short = [f"{one.case.id} {one.isolated_ms * 1e3:.3g} µs" for one in timed if one.isolated_ms < LONG_MS]
    long = len(timed) - len(short)
    seen = f"{long} of {len(timed)} timed cases take 20 µs or more"
    if not short:
        return CheckItem("long enough", CheckOutcome.PASSED, seen)
    if latency_bound:
        return CheckItem("long enough", CheckOutcome.DECLARED, f"{latency_bound}; {seen} ({', '.join(short)} do not)")
    detail = message("check_cases_short", long=long, cases=len(timed), short=", ".join(short))
    return CheckItem("long enough", CheckOutcome.FAILED, detail)
