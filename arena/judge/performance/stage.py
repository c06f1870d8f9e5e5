"""The performance stage: interleaved passes over fresh data, every pass verified, until the interval is narrow."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.correctness.verify import OutputCheck, check_inputs, check_outputs, check_outside, compared
from arena.judge.performance import estimates
from arena.judge.performance.planning import Planner, passes_of
from arena.judge.performance.plausibility import PLAUSIBILITY_CHECKS, Timing, failed_check
from arena.judge.performance.timed_program import PassPlan, TimedProgram
from arena.judge.performance.timer import Timer, TimingConfig
from arena.judge.performance.waits import LONG, SHORT, SINGLE
from arena.judge.workers.worker import CandidateFailed
from arena.results.effort import Effort
from arena.results.messages import message, within
from arena.results.record import CaseTiming, Estimate, Round
from arena.results.verdict import Status
from arena.task.definition import Arguments
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
_SAMPLED_CALLS = 2
_LARGE_ELEMENTS = 1 << 22
_RIGHT = 1.0
"""of a timed call nobody asks how nearly it was wrong"""
_PATIENCE = 12
"""how many budgets a case may take whose interval is still too wide"""
_NEARLY_AS_FAST = 0.9
_SINGLE_EVERY = 4
_ISOLATED_LOOKS = 4
"""how many times as many rounds a baseline alone may have: more are added while its latency is uncertain"""
_MOST_ROUNDS = 512
"""of one case: a record keeps them all, and more would make no interval narrower than what is believed of it"""


@dataclass
class PerformanceCheck:
    """Times candidates against the baseline on one device."""

    timer: Timer
    reference: Reference
    budget_s: float
    effort: Effort = Effort.FULL
    _random: random.Random = field(default_factory=random.SystemRandom)
    """without a state: candidates see in which order passes come, which would tell one in the end"""
    _errors: dict[str, float] = field(default_factory=dict)
    """of the arithmetic that the task allows, in the case being timed"""

    @property
    def _config(self) -> TimingConfig:
        config = self.timer.timing_config
        return config.screening() if self.effort is Effort.SCREEN else config

    @property
    def planner(self) -> Planner:
        """Return the planner of the passes."""
        return Planner(self.timer, self.reference, self._config)

    def isolated(self, side: TimedProgram, arguments: Arguments) -> tuple[Estimate, float]:
        """Time the baseline by itself; returns its latency in ms and the seconds a call takes, for planning.

        Passes are those of a screen: a latency that is only held against the one beside the candidate needs no more.
        But it is kept for all candidates to come, so that rounds go on while one that is preempted could decide it.
        """
        call_s = self.planner.probe(side, arguments)
        plan = self.timer.plan(arguments, call_s, self.timer.timing_config.screening())
        side.bind(arguments, self.reference, passes_of(plan), self.timer.arenas[0])
        shorts, longs = [], []
        for _ in range(_ISOLATED_LOOKS):
            for _ in range(self._config.isolated_rounds):
                inputs, times = self._draw(arguments, plan), {}
                for name in self._shuffled(*plan.passes):
                    side.refresh(inputs, plan.part(name))
                    times[name] = self.timer.run(side, name)[0]
                shorts.append(times.get(SHORT, 0.0))
                longs.append(times[LONG])
            latency = estimates.latency_ms(estimates.slopes(shorts, longs, plan.long - plan.short))
            if 0 <= latency.half_width <= self._config.baseline_drift / 2:
                break
        side.unbind()
        return latency, call_s

    def compare(
        self, baseline: TimedProgram, candidate: TimedProgram, arguments: Arguments, isolated: tuple[Estimate, float]
    ) -> tuple[OutputCheck, CaseTiming | None]:
        """Time both, pass by pass in turn. A failure of the candidate is a finding without a timing.

        A timing that fails a plausibility check, or leaves one undecided, is repeated once, and only the repetition
        counts: one hiccup of the machine must fail no candidate, and a candidate that cheats now and then is timed
        while it does not, or fails again.
        """
        finding, timing = self._compared(baseline, candidate, arguments, isolated)
        undecided = timing.undecided if timing is not None else ""
        if finding.status not in PLAUSIBILITY_CHECKS and not undecided:
            return finding, timing
        again, timing = self._compared(baseline, candidate, arguments, isolated)
        return again, None if timing is None else replace(timing, doubted=finding.detail or undecided)

    def _compared(
        self, baseline: TimedProgram, candidate: TimedProgram, arguments: Arguments, isolated: tuple[Estimate, float]
    ) -> tuple[OutputCheck, CaseTiming | None]:
        """One measurement, and what is to be thought of it."""
        try:
            plan = self.planner.plan(baseline, candidate, arguments, isolated[1], self.timer.placements[0])
            rounds, finding = self._all_rounds(baseline, candidate, arguments, plan)
            if finding.status is not Status.PASSED:
                return finding, None
            timing = self._timing(rounds, plan, arguments, candidate, isolated[0])
            evidence = self._evidence(timing, baseline, candidate)
            status, why = failed_check(evidence, self.timer.limits(arguments))
            feigned = self.planner.feigned(plan, candidate, arguments, isolated[1], timing.candidate_ms)
            self.planner.learn(candidate, timing.candidate_ms)
            why = why or feigned
            if status is Status.PASSED and why:
                return OutputCheck(status), replace(timing, noisy=True, undecided=why)
            return OutputCheck(status, why), timing
        except CandidateFailed as failure:
            candidate.kill()
            return OutputCheck(failure.status, failure.detail), None
        finally:
            _unbind_quietly(candidate)
            baseline.unbind()

    def _all_rounds(
        self, baseline: TimedProgram, candidate: TimedProgram, arguments: Arguments, plan: PassPlan
    ) -> tuple[list[Round], OutputCheck]:
        """Make rounds in each placement, in turn, until they say enough; both sides lie in the first one already."""
        places = list(self.timer.placements)
        bound, spent_s = places[0], 0.0
        rounds: list[Round] = []
        for side in (baseline, candidate):
            side.waits.clear()
        self._errors.clear()
        while not rounds or self._worth_more(rounds, plan, spent_s):
            for place in places:
                if place is not bound:
                    self.planner.bind(baseline, candidate, arguments, plan, place)
                    bound = place
                began = time.monotonic()
                more = partial(self._rounds, arguments, plan, rounds, place.swapped)
                for check in (_moved, more, _moved):
                    finding = check(baseline, candidate)
                    if finding.status is not Status.PASSED:
                        return rounds, finding
                spent_s += time.monotonic() - began
            places.reverse()  # where they lie now comes first
        return rounds, OutputCheck(Status.PASSED)

    def _rounds(
        self,
        arguments: Arguments,
        plan: PassPlan,
        rounds: list[Round],
        swapped: bool,
        baseline: TimedProgram,
        candidate: TimedProgram,
    ) -> OutputCheck:
        """Add the rounds of one placement that come before the interval is asked for again.

        Binding has replayed every pass once: where a call writes past its arguments, it has done so already.
        """
        for side in (baseline, candidate):
            side.sets.renew_canaries()
        for done in range(estimates.ROUNDS_OF_A_LOOK // len(self.timer.placements)):
            with_single = plan.short > 0 and done % _SINGLE_EVERY == 0
            names = (*plan.passes, SINGLE) if with_single else plan.passes
            measured, finding = self._round(baseline, candidate, arguments, plan, names)
            if measured is None:
                return finding
            rounds.append(replace(measured, swapped=swapped))
        return OutputCheck(Status.PASSED)

    def _worth_more(self, rounds: list[Round], plan: PassPlan, spent_s: float) -> bool:
        """Return whether to go on: not when the interval is narrow; far beyond the budget only where it is wide.

        And there not where most of it is what no number of rounds shows. Nobody needs to know by how much a candidate
        is slower as well as of one that might be faster.
        """
        calls = plan.long - plan.short
        ratio, by_rounds = self._speedup(rounds, calls), estimates.speedup(rounds, calls)
        narrow = ratio.half_width < self._config.wanted_half_width
        constant = ratio.half_width > 2**0.5 * by_rounds.half_width
        if narrow or ratio.high < _NEARLY_AS_FAST or len(rounds) >= _MOST_ROUNDS:
            return False
        patience = _PATIENCE if ratio.half_width > self._config.noisy_half_width and not constant else 1
        return spent_s < patience * self.budget_s

    def _speedup(self, rounds: list[Round], calls: int) -> Estimate:
        return estimates.speedup(rounds, calls, self._config.reach_error_s, self._config.latency_error)

    def _round(
        self,
        baseline: TimedProgram,
        candidate: TimedProgram,
        arguments: Arguments,
        plan: PassPlan,
        names: tuple[str, ...],
    ) -> tuple[Round | None, OutputCheck]:
        """Fresh data, each pass once on each side in random order.

        What lies around sampled calls is read before a process is woken. A pass finds its data just before it, and is
        checked just after it: work must not move from one to another. Both sides are checked alike, for the device
        remembers what it did last; what takes longer comes at the end.
        """
        inputs = self._draw(arguments, plan, candidate.constants)
        secret = self._sampled(arguments, plan, names)
        around = {side: {index: side.sets.outside(index) for index in secret} for side in (baseline, candidate)}
        times: dict[tuple[str, TimedProgram], float] = {}
        left: dict[int, dict[str, torch.Tensor]] = {}
        worker_s = 0.0
        for name in self._shuffled(*names):
            for side in self._shuffled(baseline, candidate):
                side.refresh(inputs, plan.part(name))
                with candidate.worker.still() if side is baseline else nullcontext():
                    times[name, side], worker_clock = self.timer.run(side, name)
                if side is candidate:
                    side.collect(name)
                finding, outputs = self._check_outputs(side.sets, plan.indices(name), around[side], inputs)
                ended = side.ended()
                side.sets.wipe(plan.part(name))
                if side is candidate:
                    if finding.status is Status.PASSED and not ended:
                        finding = OutputCheck(Status.WRONG_RESULT, message("wrote_after_end"))
                    if finding.status is not Status.PASSED:
                        return None, finding
                    left.update(outputs)
                    worker_s = worker_clock if name == LONG else worker_s
        for index, outputs_of_call in left.items():
            one = _of_set(inputs, index)
            finding = check_outputs(arguments, self.reference, one, outputs_of_call, enough=_RIGHT, errors=self._errors)
            if finding.status is not Status.PASSED:
                return None, _in_a_pass(finding)
        return _measured(times, baseline, candidate, worker_s), OutputCheck(Status.PASSED)

    def _draw(
        self, arguments: Arguments, plan: PassPlan, constants: Mapping[str, torch.Tensor] = MappingProxyType({})
    ) -> dict[str, torch.Tensor]:
        device = self.timer.platform.torch_device
        return draw_secret(arguments, self.reference, plan.sets, device, constants=constants)

    def _sampled(self, arguments: Arguments, plan: PassPlan, names: tuple[str, ...]) -> frozenset[int]:
        """The calls of a round that will be compared with the reference: a secret until they have been made."""
        used = [index for name in names for index in plan.indices(name)]
        return frozenset(self._random.sample(used, min(self._samples(arguments), len(used))))

    @staticmethod
    def _check_outputs(
        sets: Sets, indices: tuple[int, ...], around: dict[int, torch.Tensor], inputs: dict[str, torch.Tensor]
    ) -> tuple[OutputCheck, dict[int, dict[str, torch.Tensor]]]:
        """No call of the pass may have been skipped, and none in the secret sample have changed what is no output.

        `around`: what `Sets.outside` returned before the round, for each call of its sample. Also returns what those of
        the pass left behind, by call and by output, which is to be compared with the reference.
        """
        specs = compared(sets.arguments)
        sampled = [index for index in indices if index in around]
        left = {index: {spec.name: sets.view(spec.name)[index].clone() for spec in specs} for index in sampled}
        unwritten = sets.unwritten(indices)
        if unwritten:
            return OutputCheck(Status.WRONG_RESULT, message("timed_output_not_written", output=unwritten)), left
        for each in sampled:
            for finding in (check_inputs(_of_set(inputs, each), sets, each), check_outside(around[each], sets, each)):
                if finding.status is not Status.PASSED:
                    return _in_a_pass(finding), left
        return OutputCheck(Status.PASSED), left

    @staticmethod
    def _samples(arguments: Arguments) -> int:
        """Return how many calls of a round are compared with the reference; it bounds how many rounds there are."""
        largest = max((tensor.numel for tensor in (*arguments.inputs, *arguments.outputs)), default=0)
        return 1 if largest > _LARGE_ELEMENTS else _SAMPLED_CALLS

    def _timing(
        self, rounds: list[Round], plan: PassPlan, arguments: Arguments, candidate: TimedProgram, alone_ms: Estimate
    ) -> CaseTiming:
        calls, swapped = plan.long - plan.short, estimates.placements(rounds)
        ratio = self._speedup(rounds, calls)
        return CaseTiming(
            baseline_ms=estimates.latency_ms(estimates.baseline_slopes(rounds, calls), swapped),
            candidate_ms=estimates.latency_ms(estimates.candidate_slopes(rounds, calls), swapped),
            speedup=ratio,
            mode=candidate.mode,
            calls_short=plan.short,
            calls_long=plan.long,
            cache=self.timer.cache_state(arguments, plan),
            rounds=tuple(rounds),
            roofline_ms=self.timer.limits(arguments).roofline_ms,
            noisy=ratio.half_width > self._config.noisy_half_width or not estimates.measured(rounds, calls),
            alone_ms=alone_ms,
        )

    @staticmethod
    def _evidence(timing: CaseTiming, baseline: TimedProgram, candidate: TimedProgram) -> Timing:
        """Return what the plausibility checks use; the baseline is held against itself alone in the same place."""
        assert timing.alone_ms is not None
        there = [measured for measured in timing.rounds if not measured.swapped]
        slopes_s = estimates.baseline_slopes(there, timing.calls_long - timing.calls_short)
        return Timing(
            baseline_ms=timing.baseline_ms,
            candidate_ms=timing.candidate_ms,
            isolated_ms=timing.alone_ms,
            interleaved_ms=estimates.latency_ms(slopes_s),
            rounds=timing.rounds,
            long=timing.calls_long,
            short=timing.calls_short,
            baseline_waits=baseline.waits,
            candidate_waits=candidate.waits,
        )

    def _shuffled(self, *items: T) -> list[T]:
        return self._random.sample(items, len(items))


def _of_set(inputs: dict[str, torch.Tensor], index: int) -> dict[str, torch.Tensor]:
    return {name: values[index] for name, values in inputs.items()}


def _in_a_pass(finding: OutputCheck) -> OutputCheck:
    return OutputCheck(finding.status, within("in_timing", finding.detail))


def _measured(
    times: dict[tuple[str, TimedProgram], float], baseline: TimedProgram, candidate: TimedProgram, worker_s: float
) -> Round:
    return Round(
        times.get((SHORT, baseline), 0.0),
        times.get((SHORT, candidate), 0.0),
        times[LONG, baseline],
        times[LONG, candidate],
        worker_s,
        times.get((SINGLE, baseline), 0.0),
        times.get((SINGLE, candidate), 0.0),
    )


def _moved(baseline: TimedProgram, candidate: TimedProgram) -> OutputCheck:
    """The judge chose where and how its workers run: one that is scheduled otherwise is replaced, its timing void."""
    for who, side in (("baseline", baseline), ("candidate", candidate)):
        difference = side.worker.moved(exactly=side is baseline)
        if difference:
            side.kill()
            return OutputCheck(Status.TIMING_MISMATCH, message("scheduling_changed", program=who, found=difference))
    return OutputCheck(Status.PASSED)


def _unbind_quietly(side: TimedProgram) -> None:
    """Free a candidate's buffers; if its worker no longer answers, it has nothing more to say."""
    try:
        side.unbind()
    except CandidateFailed:
        side.kill()
