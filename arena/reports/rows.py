"""Runs flattened to one row per planned trial and one per case: what every measure and table is computed from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from arena.errors import RecordError
from arena.reports.intervals import log_error, with_log_error
from arena.results.failures import FailureClass, failure_class
from arena.results.order import gained
from arena.results.outcome import (
    RIGHT_BUT_INVALID,
    HeldoutOutcome,
    Outcome,
    calibrates,
    ended_by,
    heldout_outcome,
    heldout_ran,
    outcome_of_trial,
)
from arena.results.portability import TargetBuild
from arena.results.profile import Profile
from arena.results.record import CaseResult, Estimate, Evaluation, Split, Trial, counted
from arena.results.reward import reward
from arena.results.scales import points, sol_score
from arena.results.session import Session
from arena.results.verdict import CORRECT, Stage, Status
from arena.runs.records import RunRecords

EXPERT = "expert"
"""the agent that hands in the kernels of experts"""
CORRELATION = 0.07
"""of the errors of two cases of a trial (docs/develop/measurement.md)"""


@dataclass(frozen=True)
class CaseRow:
    """One case of one trial. `outcome` is None for seen cases and where a side was not judged."""

    result: CaseResult
    outcome: HeldoutOutcome | None

    @property
    def correct(self) -> bool:
        """Return whether the candidate's outputs were right."""
        return self.result.candidate in CORRECT

    @property
    def failure(self) -> FailureClass | None:
        """Return how it failed; None where it did not, or was not judged."""
        return failure_class(self.result)

    @property
    def noisy(self) -> bool:
        """Return whether sampling ended before the interval was narrow enough."""
        return self.result.timing is not None and self.result.timing.noisy

    @property
    def doubted(self) -> str:
        """Why a first measurement was not believed, where there was a second; the second counts."""
        return "" if self.result.timing is None else self.result.timing.doubted


@dataclass(frozen=True)
class TrialRow:
    """One planned trial; `status` is that of the first gate that failed, None where there is no record.

    `ended_by` is that of the first stage that failed, held-out cases too.

    Speedups are None unless they count. `expert` is the speedup of the agent of that name at the same task. `family` is
    that of the task, empty where the run does not say. `calibrates`: the agent hands in files of the corpus, and has no
    rank. `arch` is where the candidate ran, `targets` what else it was built for, `page` the link from the report to
    what the agent did, where that was written.
    """

    run: str
    label: str
    agent: str
    task: str
    task_type: str
    attempt: int
    status: Status | None
    detail: str
    emulated: bool
    latency_bound: bool = False
    family: str = ""
    ended_by: Status | None = None
    calibrates: bool = False
    compiled: bool = False
    correct: bool = False
    performed: bool = False
    heldout_ran: bool = False
    outcome: Outcome = Outcome.NO_VERDICT
    speedup: Estimate | None = None
    heldout_speedup: Estimate | None = None
    served_speedup: Estimate | None = None
    expert: Estimate | None = None
    roofline: float | None = None
    sol: float | None = None
    seconds: float = 0.0
    task_hash: str = ""
    cases: tuple[CaseRow, ...] = ()
    arch: str = ""
    targets: tuple[TargetBuild, ...] = ()
    session: Session | None = None
    page: str = ""
    compile_log: str = ""
    profile: Profile | None = None

    @property
    def handed_in(self) -> bool:
        """Return whether there is a record, and the agent handed in a kernel of its own."""
        return self.status is not None and self.outcome is not Outcome.NOT_HANDED_IN

    @property
    def solved(self) -> bool:
        """Return whether every case is right, seen and unseen."""
        return self.outcome is Outcome.SOLVED

    @property
    def gain(self) -> Estimate | None:
        """The speedup where it counts as a gain; None for all other trials, which count as 1."""
        return gained(self.outcome, self.speedup)

    @property
    def points(self) -> float:
        """AgentKernelArena's points."""
        return points(self.compiled, self.correct, self.speedup.value if self.speedup else None)

    @property
    def reward(self) -> float:
        """The dense reward of KernelBench on OpenReward."""
        speedup = self.speedup.value if self.speedup else None
        return reward(self.status, speedup, overfit=self.outcome is Outcome.OVERFIT)

    @property
    def retention(self) -> float | None:
        """Held-out speedup over seen speedup, where there are both, and no held-out timing is implausible."""
        if self.speedup is None or self.heldout_speedup is None:
            return None
        if any(case.result.candidate in RIGHT_BUT_INVALID for case in self.split(Split.HELDOUT)):
            return None
        return self.heldout_speedup.value / self.speedup.value

    @property
    def regime_retention(self) -> float | None:
        """The speedup in the worst regime over that with the usual values, where cases have both: geometric mean.

        Noise never raises it: of the usual values the speedup as measured counts, of a regime what it is credited with.
        """
        if self.speedup is None:
            return None
        usual = {one.result.case: one.result.speedup.value for one in self.cases if one.result.speedup}
        worst: dict[str, float] = {}
        for result in (case.result for case in self.cases):
            if result.regime and result.credit and result.sizes in usual:
                kept = result.credit.value / usual[result.sizes]
                worst[result.sizes] = min(kept, worst.get(result.sizes, kept))
        return geometric_mean(worst.values()) if worst else None

    @property
    def unjudged(self) -> int:
        """Held-out cases without an outcome although the held-out stage ran: the harness, not the candidate, failed."""
        return sum(case.outcome is None for case in self.split(Split.HELDOUT)) if self.heldout_ran else 0

    def split(self, split: Split) -> tuple[CaseRow, ...]:
        """The cases of one split."""
        return tuple(case for case in self.cases if case.result.split is split)


def trial_rows(runs: Sequence[RunRecords]) -> list[TrialRow]:
    """One row per planned trial of every run, in planned order; raises `RecordError` where runs may not be mixed."""
    check_mixable(runs)
    shared = Counter(agent for run in runs for agent in set(run.info.agents))
    rows = []
    for run in runs:
        recorded = {trial.key: trial for trial in run.trials}
        types = {trial.task: trial.task_type for trial in run.trials}
        for agent, task, attempt in run.info.planned:
            label = f"{agent} ({run.info.run})" if shared[agent] > 1 else agent
            task_type = types.get(task, task.split("/", 1)[0])
            rows.append(_row(run, label, task_type, (agent, task, attempt), recorded.get((agent, task, attempt))))
    return _beside_experts(rows)


def _beside_experts(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """Every row with the expert's speedup at the same task, unchanged: the geometric mean over its trials."""
    experts: dict[tuple[str, str], list[Estimate]] = {}
    for row in rows:
        if row.agent == EXPERT and row.calibrates and row.speedup is not None:
            experts.setdefault((row.task, row.task_hash), []).append(row.speedup)
    means = {task: mean_speedup(speedups) for task, speedups in experts.items()}
    return [row if row.agent == EXPERT else replace(row, expert=means.get((row.task, row.task_hash))) for row in rows]


def check_mixable(runs: Sequence[RunRecords]) -> None:
    """Raise `RecordError` unless the runs have different names and were all measured on the same kind of device."""
    names = Counter(run.info.run for run in runs)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise RecordError(f"run {twice[0]!r} is given twice; name every run once")
    for run in runs:
        if run.info.devices:
            raise RecordError(
                f"run {run.info.run!r} was measured on {len(run.info.devices)} devices, which are never averaged; "
                f"`arena report {run.path}` writes a report for each"
            )
    for run in runs[1:]:
        first, other = runs[0].info, run.info
        if not first.environment.comparable_with(other.environment):
            raise RecordError(
                f"run {first.run!r} was measured on {first.environment.device.name} and {other.run!r} on "
                f"{other.environment.device.name}: latencies of two devices do not belong in one report; "
                "write one report per device, or see `arena portability` for their efficiencies"
            )
        if first.effort is not other.effort:
            raise RecordError(
                f"the effort of run {first.run!r} is {first.effort}, that of {other.run!r} {other.effort}: "
                "speedups of two efforts do not belong in one report; write one report for each"
            )


def mean_speedup(independent: Sequence[Estimate]) -> Estimate:
    """Geometric mean of speedups whose errors are independent: of several attempts, or several runs."""
    error = math.hypot(*map(log_error, independent)) / len(independent)
    return with_log_error(geometric_mean(one.value for one in independent), error)


def combine(estimates: Iterable[Estimate]) -> Estimate | None:
    """Geometric mean of the speedups of a trial's cases, its interval from theirs, on the log scale.

    Errors of two cases are correlated a little, since the same two processes ran them.
    """
    parts = list(estimates)
    if not parts:
        return None
    logs = [math.log(part.value) for part in parts]
    below = [log - math.log(part.low) if part.low > 0 else math.inf for log, part in zip(logs, parts, strict=True)]
    above = [math.log(part.high) - log for log, part in zip(logs, parts, strict=True)]
    middle = sum(logs) / len(parts)
    value = math.exp(middle)
    low, high = math.exp(middle - _error_of_mean(below)), math.exp(middle + _error_of_mean(above))
    return Estimate(value, min(low, value), max(high, value))


def served_speedup(cases: Iterable[CaseResult]) -> Estimate | None:
    """Return how many times less time the recorded traffic of a task takes; None unless every case of it counts.

    Times with the baseline are summed over cases, seen and unseen, and divided by the sum of times with the candidate.
    """
    recorded = [result for result in cases if result.recorded]
    speedups = [result.credit for result in recorded if result.credit]
    if not recorded or len(speedups) < len(recorded):
        return None
    before = [result.served_time for result in recorded]
    if min(before) <= 0:  # a latency that is lost in noise
        return None
    after = [time / speedup.value for time, speedup in zip(before, speedups, strict=True)]
    errors = [time * log_error(speedup) for time, speedup in zip(after, speedups, strict=True)]
    return with_log_error(sum(before) / sum(after), _error_of_sum(errors) / sum(after))


def _error_of_mean(errors: Sequence[float]) -> float:
    return _error_of_sum(errors) / len(errors)


def _error_of_sum(errors: Sequence[float]) -> float:
    """The error of a sum of values of which any two have the same correlation."""
    apart, together = sum(error**2 for error in errors), sum(errors) ** 2
    return math.sqrt((1 - CORRELATION) * apart + CORRELATION * together)


def _row(run: RunRecords, label: str, task_type: str, key: tuple[str, str, int], trial: Trial | None) -> TrialRow:
    agent, task, attempt = key
    emulated = run.info.environment.device.emulated
    short, family = task in run.info.latency_bound, run.info.families.get(task, "")
    apart = calibrates(agent, run.info.used.get(agent))
    row = TrialRow(run.info.run, label, agent, task, task_type, attempt, None, "", emulated, short, family, None, apart)
    if trial is None:
        return row
    row = replace(
        row,
        status=trial.status,
        ended_by=ended_by(trial.evaluation) if trial.evaluation is not None else trial.status,
        detail=trial.detail or _first_detail(trial.evaluation),
        seconds=trial.seconds,
        task_hash=trial.task_hash,
        session=trial.session,
        outcome=outcome_of_trial(trial),
    )
    return row if trial.evaluation is None else _judged(row, trial.evaluation)


def _judged(row: TrialRow, evaluation: Evaluation) -> TrialRow:
    ran = heldout_ran(evaluation)
    cases = tuple(CaseRow(result, heldout_outcome(result, ran)) for result in evaluation.cases)
    if not row.handed_in:
        return replace(row, cases=cases)
    compiled = _held(evaluation, Stage.COMPILE)
    correct = compiled and _held(evaluation, Stage.CORRECTNESS) and evaluation.status in CORRECT
    passed = correct and row.status is Status.PASSED
    seen = [result for result in evaluation.split(Split.SEEN) if result.speedup]
    heldout = evaluation.split(Split.HELDOUT)
    return replace(
        row,
        compiled=compiled,
        correct=correct,
        performed=passed and _held(evaluation, Stage.PERFORMANCE),
        heldout_ran=ran,
        speedup=combine(result.credit for result in counted(seen) if result.credit) if passed else None,
        heldout_speedup=combine(result.credit for result in counted(heldout) if result.credit) if passed else None,
        served_speedup=served_speedup(evaluation.cases) if passed else None,
        roofline=_roofline(seen) if passed and not row.emulated else None,
        sol=_sol(seen) if passed and not row.emulated else None,
        cases=cases,
        arch=evaluation.environment.device.arch,
        targets=evaluation.targets,
        compile_log=evaluation.compile_log,
        profile=evaluation.profile,
    )


def _held(evaluation: Evaluation, stage: Stage) -> bool:
    """Return whether the stage was reached and everything said of it is `passed`."""
    verdicts = [verdict.passed for verdict in evaluation.verdicts if verdict.stage is stage]
    return bool(verdicts) and all(verdicts)


def _roofline(seen: Sequence[CaseResult]) -> float | None:
    """Geometric mean over the timed seen cases of the fraction of the roofline; None where no peak is known."""
    fractions = [result.timing.roofline_fraction for result in seen if result.timing]
    known = [math.log(fraction) for fraction in fractions if fraction is not None]
    return math.exp(sum(known) / len(known)) if known else None


def _sol(seen: Sequence[CaseResult]) -> float | None:
    """Mean SOL score over the timed seen cases; None where no peak is known."""
    scores = [
        sol_score(timing.candidate_ms.value, timing.baseline_ms.value, timing.roofline_ms)
        for timing in (result.timing for result in seen)
        if timing is not None and timing.roofline_ms is not None
    ]
    return sum(scores) / len(scores) if scores else None


def _first_detail(evaluation: Evaluation | None) -> str:
    """What the first failed stage said."""
    verdicts = evaluation.verdicts if evaluation else ()
    return next((verdict.detail for verdict in verdicts if not verdict.passed and verdict.detail), "")
