"""Two agents, or one agent in two runs, paired by task and case: is one more often right, is one faster?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from arena.errors import UsageError
from arena.reports.intervals import Quantity, Tally, estimate, log_error, with_log_error
from arena.reports.measure import by_task
from arena.reports.paired_tests import paired_t, sign_test
from arena.reports.rows import CORRELATION, TrialRow, combine, mean_speedup, trial_rows
from arena.results.record import CaseResult, CaseTiming, Estimate, RunInfo, Split
from arena.runs.records import RunRecords

ByTask = Mapping[str, Sequence[TrialRow]]
"""The attempts of one agent, by task."""


@dataclass(frozen=True)
class CasePair:
    """Speedups and latencies of both sides on one seen case, means over attempts; above 1: the second is faster.

    `speedup_ratio` has the interval that follows from both speedups', `latency_ratio` is for information.
    """

    task: str
    case: str
    label: str
    first_ms: float
    second_ms: float
    speedup_ratio: Estimate
    noisy: bool

    @property
    def latency_ratio(self) -> float:
        """First latency over second latency."""
        return self.first_ms / self.second_ms


@dataclass(frozen=True)
class TaskPair:
    """One task: the shares of attempts right on every seen case, and solved, of both sides; ratios as of a case.

    A trial without unseen cases to try counts as solved where it is right.
    """

    task: str
    first_seen: float
    second_seen: float
    first_solved: float
    second_solved: float
    speedup_ratio: Estimate | None
    latency_ratio: float | None


def common_tasks(ones: ByTask, twos: ByTask) -> tuple[list[str], list[str]]:
    """Tasks of both sides that did not change between them, and what to tell the reader about the others."""
    shared = [task for task in ones if task in twos]
    changed = [task for task in shared if len(_hashes(ones[task]) | _hashes(twos[task])) > 1]
    single = len(ones) + len(twos) - 2 * len(shared)
    notes = [f"{single} tasks are in one of the two only and are left out"] if single else []
    if changed:
        notes.append(f"{len(changed)} tasks changed between the two and are left out: {', '.join(changed)}")
    kept = [task for task in shared if task not in changed]
    missing = sum(row.status is None for side in (ones, twos) for task in kept for row in side[task])
    if missing:
        notes.append(f"{missing} planned trials have no record and count as failed; `arena run CONFIG` resumes")
    return kept, notes


def _hashes(rows: Sequence[TrialRow]) -> set[str]:
    return {row.task_hash for row in rows if row.task_hash}


def task_pair(task: str, ones: Sequence[TrialRow], twos: Sequence[TrialRow], cases: Sequence[CasePair]) -> TaskPair:
    """Pair the correctness of both sides on one task, and the geometric mean ratios of its cases."""
    mine = [pair for pair in cases if pair.task == task]
    return TaskPair(
        task,
        _share(row.outcome.right_on_seen for row in ones),
        _share(row.outcome.right_on_seen for row in twos),
        _share(row.outcome.solves for row in ones),
        _share(row.outcome.solves for row in twos),
        combine(pair.speedup_ratio for pair in mine),
        geometric_mean(pair.latency_ratio for pair in mine) if mine else None,
    )


def _share(values: Iterable[bool]) -> float:
    known = list(values)
    return sum(known) / len(known)


def case_pairs(tasks: Sequence[str], ones: ByTask, twos: ByTask) -> list[CasePair]:
    """Pair the seen cases that both sides passed with a valid timing."""
    pairs = []
    for task in tasks:
        first, second = _timings(ones[task]), _timings(twos[task])
        for case in first:
            if case in second:
                one, two = first[case], second[case]
                ratio = _quotient(two.speedup, one.speedup)
                pairs.append(CasePair(task, case, one.label, one.ms, two.ms, ratio, one.noisy or two.noisy))
    return pairs


def _quotient(over: Estimate, under: Estimate) -> Estimate:
    """The quotient of two speedups, whose errors are independent: each has a baseline and rounds of its own."""
    return with_log_error(over.value / under.value, math.hypot(log_error(over), log_error(under)))


@dataclass(frozen=True)
class _Timing:
    label: str
    ms: float
    speedup: Estimate
    noisy: bool


def _timings(rows: Sequence[TrialRow]) -> dict[str, _Timing]:
    """Per seen case, the geometric means over those attempts whose speedup counts."""
    found: dict[str, list[tuple[CaseResult, CaseTiming]]] = {}
    for row in rows:
        for case in row.split(Split.SEEN) if row.speedup else ():
            timing = case.result.timing
            if timing is not None and case.result.speedup is not None:
                found.setdefault(case.result.case, []).append((case.result, timing))
    return {
        case: _Timing(
            timed[0][0].label,
            geometric_mean(timing.candidate_ms.value for _, timing in timed),
            mean_speedup([timing.speedup for _, timing in timed]),
            any(timing.noisy for _, timing in timed),
        )
        for case, timed in found.items()
    }


SIGNIFICANT = 0.05
TASKS_FOR_A_TEST = 6
"""With fewer tasks than this their cases are compared, and the result is said to hold for these tasks only."""


class Conclusion(StrEnum):
    """What a comparison shows."""

    FIRST = "first"
    SECOND = "second"
    NONE_SHOWN = "no difference shown"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class ComparedAgent:
    """One side of a comparison: an agent of a run."""

    run: RunRecords
    agent: str

    @property
    def name(self) -> str:
        """How the side is called in a conclusion."""
        return f"{self.agent} ({self.run.info.run})"


@dataclass(frozen=True)
class CorrectnessResult:
    """An exact sign test of the tasks that one side is right on more often than the other.

    `difference`: tasks on which the second is right more often, minus those on which the first is, of all tasks. Its
    interval is of the same test as `p_value`, so that it holds 0 exactly where p >= 0.05. With one attempt a task the
    test is McNemar's, and the difference that of the rates.
    """

    difference: Quantity | None
    first_only: int
    second_only: int
    p_value: float
    finding: Conclusion
    conclusion: str


@dataclass(frozen=True)
class SpeedResult:
    """Ratio of speedups, second over first, with a paired t test on its logarithm.

    Interval and `p_value` are of the same test: the interval holds 1 exactly where p >= 0.05. `unit`: what was paired,
    tasks or (where they are few) cases. All None where nothing could be
    compared; the conclusion says why. `latency_ratio`, first over second, is for information: it holds whatever
    made the machine slower or faster between the two.
    """

    speedup_ratio: Quantity | None
    latency_ratio: Quantity | None
    p_value: float | None
    unit: str
    finding: Conclusion
    conclusion: str


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sides, on the tasks that both were given."""

    first: str
    second: str
    seen: CorrectnessResult
    solved: CorrectnessResult
    speed: SpeedResult
    tasks: tuple[TaskPair, ...]
    cases: tuple[CasePair, ...]
    notes: tuple[str, ...]
    emulated: bool


def compare_runs(
    first: RunRecords, second: RunRecords, first_agent: str | None = None, second_agent: str | None = None
) -> Comparison:
    """Compare two runs; where a run has several agents, the agent must be named."""
    return compare(
        ComparedAgent(first, only_agent(first, first_agent)), ComparedAgent(second, only_agent(second, second_agent))
    )


def compare_agents(run: RunRecords, first_agent: str, second_agent: str) -> Comparison:
    """Compare two agents of one run."""
    return compare_runs(run, run, first_agent, second_agent)


def compare(first: ComparedAgent, second: ComparedAgent) -> Comparison:
    """Pair two sides by task and by case; correctness is always compared, speed only on the same kind of device."""
    if (first.run.info.run, first.agent) == (second.run.info.run, second.agent):
        raise UsageError(f"{first.name} is compared with itself; name two agents or two runs")
    ones, twos = _rows(first), _rows(second)
    common, notes = common_tasks(ones, twos)
    one_env, two_env = first.run.info.environment, second.run.info.environment
    reason = _not_comparable(first.run.info, second.run.info)
    cases = [] if reason else case_pairs(common, ones, twos)
    tasks = [task_pair(task, ones[task], twos[task], cases) for task in common]
    names = first.name, second.name
    if reason:
        speed = SpeedResult(None, None, None, "task", Conclusion.NOT_COMPARED, f"speed not compared: {reason}")
    else:
        speed = _speed(names, cases)
    return Comparison(
        *names,
        _correctness(names, "Right on seen cases", [(task.first_seen, task.second_seen) for task in tasks]),
        _correctness(names, "Solved, unseen cases too", [(task.first_solved, task.second_solved) for task in tasks]),
        speed,
        tuple(tasks),
        tuple(cases),
        tuple(notes),
        one_env.device.emulated or two_env.device.emulated,
    )


def _not_comparable(first: RunInfo, second: RunInfo) -> str:
    """Return the reason why speeds of two runs are not compared; an empty string where they are."""
    if not first.environment.comparable_with(second.environment):
        return f"{first.environment.device.name} and {second.environment.device.name} are different devices"
    if first.effort is not second.effort:
        return f"one run has effort {first.effort}, the other {second.effort}"
    return ""


def only_agent(run: RunRecords, agent: str | None, argument: str = "") -> str:
    """Return the agent of a run to compare; raises `UsageError` that names `argument` where it is not clear which."""
    agents = run.info.agents
    if agent is None and len(agents) == 1:
        return agents[0]
    if agent is None or agent not in agents:
        problem = "has several agents" if agent is None else f"has no agent {agent!r}"
        how = f" with {argument}" if argument else ""
        raise UsageError(f"run {run.info.run!r} {problem}; name one{how}: {', '.join(agents)}")
    return agent


def _rows(side: ComparedAgent) -> Mapping[str, Sequence[TrialRow]]:
    mine = [row for row in trial_rows([side.run]) if row.agent == side.agent]
    return {attempts[0].task: attempts for attempts in by_task(mine)}


def _correctness(names: tuple[str, str], where: str, pairs: Sequence[tuple[float, float]]) -> CorrectnessResult:
    first_only = sum(one > two for one, two in pairs)
    second_only = sum(two > one for one, two in pairs)
    gap, p_value = sign_test(first_only, second_only, len(pairs))
    facts = f"{first_only} tasks for {names[0]}, {second_only} for {names[1]}, of {len(pairs)}; p = {p_value:.3g}"
    if p_value >= SIGNIFICANT:
        finding, sentence = Conclusion.NONE_SHOWN, "no difference shown"
    elif second_only > first_only:
        finding, sentence = Conclusion.SECOND, f"{names[1]} more often"
    else:
        finding, sentence = Conclusion.FIRST, f"{names[0]} more often"
    conclusion = f"{where}: {sentence} ({facts})."
    return CorrectnessResult(gap, first_only, second_only, p_value, finding, conclusion)


def _speed(names: tuple[str, str], cases: Sequence[CasePair]) -> SpeedResult:
    if not cases:
        reason = "speed not compared: no case that both pass with a valid timing"
        return SpeedResult(None, None, None, "task", Conclusion.NOT_COMPARED, reason)
    tasks = list(dict.fromkeys(pair.task for pair in cases))
    unit = "task" if len(tasks) >= TASKS_FOR_A_TEST else "case"
    clusters = [[pair for pair in cases if pair.task == task] for task in tasks]
    pairs = [_tally(cluster) for cluster in clusters]
    latencies = [math.log(geometric_mean(pair.latency_ratio for pair in cluster)) for cluster in clusters]
    if unit == "case":
        pairs = [_case_tally(pair, len(cluster)) for cluster in clusters for pair in cluster]
        latencies = [math.log(pair.latency_ratio) for cluster in clusters for pair in cluster]
    ratio, p_value = paired_t(pairs)
    finding, conclusion = _verdict(names, ratio, p_value, unit, len(pairs))
    return SpeedResult(
        ratio, estimate([Tally(log, 1) for log in latencies], log=True), p_value, unit, finding, conclusion
    )


def _tally(cluster: Sequence[CasePair]) -> Tally:
    """One task: the mean logarithm over its cases, with the error that follows from theirs."""
    ratio = combine(pair.speedup_ratio for pair in cluster)
    assert ratio is not None
    return Tally(math.log(ratio.value), 1, log_error(ratio))


def _case_tally(pair: CasePair, cases: int) -> Tally:
    """One of a task's cases. Its error is larger by what the correlation within a task adds to their mean's error."""
    inflation = math.sqrt(1 + CORRELATION * (cases - 1))
    return Tally(math.log(pair.speedup_ratio.value), 1, log_error(pair.speedup_ratio) * inflation)


def _verdict(
    names: tuple[str, str], ratio: Quantity, p_value: float | None, unit: str, count: int
) -> tuple[Conclusion, str]:
    """Call a difference where the test of tasks and timings shows one; say which side the ratio is of."""
    scope = f"over {count} {unit}s{' of these tasks only' if unit == 'case' else ''} that both pass on seen cases"
    scope += ", each against its own baseline"
    if p_value is None or ratio.low is None or ratio.high is None:
        return Conclusion.NONE_SHOWN, f"Speed: no difference shown, since one pair has no interval ({scope})."
    facts = f"95 % interval [{ratio.low:.3f}, {ratio.high:.3f}], p = {p_value:.3g}, {scope}"
    if p_value >= SIGNIFICANT:
        measured = f"the speedups of {names[1]} are {ratio.value:.3f} times those of {names[0]}"
        return Conclusion.NONE_SHOWN, f"Speed: no difference shown ({measured}, {facts})."
    if ratio.value > 1:
        return Conclusion.SECOND, f"Speed: {names[1]} is {ratio.value:.3f}× as fast as {names[0]} ({facts})."
    inverse = f"95 % interval [{1 / ratio.high:.3f}, {1 / ratio.low:.3f}], p = {p_value:.3g}, {scope}"
    return Conclusion.FIRST, f"Speed: {names[0]} is {1 / ratio.value:.3f}× as fast as {names[1]} ({inverse})."
