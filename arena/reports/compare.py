"""Two agents, or one agent in two runs, paired by task and case: is one more often right, is one faster?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from arena.errors import UsageError
from arena.reports.intervals import Quantity, Tally, estimate, log_error
from arena.reports.measure import by_task
from arena.reports.paired_tests import paired_t, sign_test
from arena.reports.pairs import CasePair, TaskPair, case_pairs, common_tasks, task_pair
from arena.reports.rows import CORRELATION, TrialRow, combine, trial_rows
from arena.results.record import RunInfo
from arena.runs.records import RunRecords

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
