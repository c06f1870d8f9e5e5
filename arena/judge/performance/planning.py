"""Plan how many calls the passes of a comparison have, from rough figures of a call, which decide no verdict."""

from __future__ import annotations

from dataclasses import dataclass

from arena.judge.performance.timed_program import PassPlan, TimedProgram
from arena.judge.performance.timer import Placement, Timer, TimingConfig
from arena.judge.performance.waits import LONG, PROBE, SHORT, SINGLE
from arena.results.messages import message
from arena.results.record import Estimate
from arena.task.definition import Arguments
from arena.task.numerics.reference import Reference

_PROBE_CALLS = 16
_PROBE_REPEATS = 2
_MUCH_LONGER = 1.6
"""a plan that asks for this many times the calls is worth binding the buffers again"""
_LEAST_S = 1e-6
_SLOW_S = 1e-3
"""what a checked call takes with the way to its worker tells something of the kernel from here on"""
_FAR_FROM_CREDIT = 2.0
"""times the baseline's latency: from there on nothing that a short pass hides makes a candidate the faster one"""


@dataclass(frozen=True)
class Planner:
    """Plans passes on one device, and binds both sides for them."""

    timer: Timer
    reference: Reference
    timing_config: TimingConfig

    def probe(self, side: TimedProgram, arguments: Arguments) -> float:
        """A rough figure of the seconds a call takes, on one set over and over.

        The set lies where those of the passes will: zeros written to scattered rows took 17 ms in a buffer made for it
        (on an H200), and take 0.1 ms there.
        """
        many, one = (0,) * _PROBE_CALLS, (0,)
        if not self.timer.platform.graphs:
            return 0.0
        side.bind(arguments, self.reference, {PROBE: many, SINGLE: one}, self.timer.arenas[0])
        best = {name: self._best_s(side, name) for name in (PROBE, SINGLE)}
        side.unbind()
        return max((best[PROBE] - best[SINGLE]) / (_PROBE_CALLS - 1), _LEAST_S)

    def plan(
        self, baseline: TimedProgram, candidate: TimedProgram, arguments: Arguments, call_s: float, place: Placement
    ) -> PassPlan:
        """Bind both for passes as the baseline's `call_s` asks for, and as long as what is known of the candidate asks.

        That is what its calls took while they were checked, if it was slow then, and two passes over the data of its
        warm-up. Passes are longer where these say that a call takes much less than the baseline's, and shorter only
        where both figures say that it takes far more.
        """
        plan = self._of(arguments, call_s, candidate)
        self.bind(baseline, candidate, arguments, plan, place)
        if self.timer.platform.graphs:
            candidate.call_s = _least(candidate.call_s, self._rough_call_s(candidate, plan))
            longer = self._of(arguments, call_s, candidate)
            if longer.long > _MUCH_LONGER * plan.long:
                plan = longer
                self.bind(baseline, candidate, arguments, plan, place)
        return plan

    def bind(
        self,
        baseline: TimedProgram,
        candidate: TimedProgram,
        arguments: Arguments,
        plan: PassPlan,
        place: Placement,
    ) -> None:
        """Bind both sides in a placement."""
        baseline.bind(arguments, self.reference, passes_of(plan), place.baseline)
        candidate.bind(arguments, self.reference, passes_of(plan), place.candidate)

    def feigned(
        self, plan: PassPlan, candidate: TimedProgram, arguments: Arguments, call_s: float, latency_ms: Estimate
    ) -> str:
        """Say so where a candidate got shorter passes than the baseline needs, and then was too fast for them.

        In short passes a part of what is subtracted, or begun before the clock, would be a large part of a call. Of one
        that is slow, nobody minds shorter ones.
        """
        before_ms = (candidate.call_s or call_s) * 1e3
        usual = self.timer.plan(arguments, call_s, self.timing_config)
        measured_s = _measured(candidate.call_s, latency_ms)
        fair = min(usual.long, self.timer.plan(arguments, call_s, self.timing_config, measured_s).long)
        tolerated = _MUCH_LONGER if latency_ms.value / 1e3 > _FAR_FROM_CREDIT * call_s else 1.0
        if fair <= tolerated * plan.long:
            return ""
        return message("planning_differs", before_ms=before_ms, timed_ms=latency_ms.value)

    @staticmethod
    def learn(candidate: TimedProgram, latency_ms: Estimate) -> None:
        """Have what a call took in timed passes count where they are planned again."""
        candidate.call_s = _measured(candidate.call_s, latency_ms)

    def _of(self, arguments: Arguments, call_s: float, candidate: TimedProgram) -> PassPlan:
        return self.timer.plan(arguments, call_s, self.timing_config, candidate.call_s)

    def _rough_call_s(self, side: TimedProgram, plan: PassPlan) -> float:
        best = {name: self._best_s(side, name) for name in plan.passes}
        return max((best[LONG] - best.get(SHORT, 0.0)) / (plan.long - plan.short), _LEAST_S)

    def _best_s(self, side: TimedProgram, name: str) -> float:
        return min(self.timer.run(side, name)[0] for _ in range(_PROBE_REPEATS))


def passes_of(plan: PassPlan) -> dict[str, tuple[int, ...]]:
    """The sets of each pass, by its name."""
    return {name: plan.indices(name) for name in (SHORT, LONG, SINGLE)}


def told_by_check(call_s: float | None) -> float | None:
    """Return what a checked call tells of a kernel, in seconds: nothing where reaching the worker may be most of it."""
    return None if call_s is None or call_s < _SLOW_S else call_s


def _least(call_s: float | None, another_s: float) -> float:
    """The least of all figures counts: nobody gets short passes by being slow once."""
    return another_s if call_s is None else min(call_s, another_s)


def _measured(call_s: float | None, latency_ms: Estimate) -> float | None:
    """The same with a latency, unless that may be nothing."""
    return _least(call_s, latency_ms.value / 1e3) if latency_ms.low > 0 else call_s
