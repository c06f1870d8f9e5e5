"""Figures of the kept run of all tasks on H200s, as README and docs have them. Used by `tools/claims.py`."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import NamedTuple

from arena.reports import formats, task_versions
from arena.reports.groups import ALL
from arena.reports.intervals import Quantity
from arena.reports.measure import Unit
from arena.reports.rows import EXPERT, trial_rows
from arena.reports.summary import SummaryRow, summary_table
from arena.reports.task_quality import BASELINE
from arena.results.outcome import outcome_of_trial
from arena.results.record import CaseTiming, Estimate, Split, Trial
from arena.results.verdict import Stage, Status
from arena.runs.records import RunRecords, read_run
from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.task_folder import TASKS
from figures import accuracy, kept

CORPORA = (TASKS, *sorted((kept.ROOT / "corpora").iterdir()))
LONG = accuracy.BANDS_MS[0]
MOST = 1.2
"""tasks are listed whose credit changes by more than this factor"""


def full_result() -> str:
    """Return how the experts did, over which tasks."""
    run, row = kept.run(kept.FULL), _row(EXPERT)
    experts = {trial.task for trial in run.trials if trial.agent == EXPERT and trial.evaluation is not None}
    solved = sum(count for outcome, count in row.outcomes.items() if outcome.solves)
    gain, short = _gain(row), set(run.info.latency_bound)
    return (
        f"On {run.info.environment.device.name}s {len(run.info.tasks)} tasks ran on {run.info.started_at[:10]}. "
        f"{len(experts)} of them have an expert, and {solved} experts pass every case, seen and unseen. "
        f"Their *gain* is {formats.quantity(gain, Unit.FACTOR)} over the {gain.tasks} tasks "
        "that are not bound by latency. "
        f"{gain.tasks - len(experts - short)} of these have no expert and count as 1×."
    )


def full_counts() -> str:
    """Return how many kernels passed, and how many timings are noisy."""
    run = kept.run(kept.FULL)
    rows, timed = trial_rows([run]), [timing for *_, timing in accuracy.timed_cases(run.trials)]
    solved = {
        agent: sum(row.agent == agent and row.correct and row.heldout_ran for row in rows) for agent in run.info.agents
    }
    own = [row.speedup for row in rows if row.agent == BASELINE and row.speedup]
    right = sum(all(case.correct for case in row.cases) for row in rows if row.cases)
    return (
        f"{right} of {sum(solved.values())} kernels passed every case: "
        f"{solved[BASELINE]} baselines and {solved[EXPERT]} experts. "
        f"Of {len(timed):,} timings {_percent(sum(one.noisy for one in timed) / len(timed), 1)} are noisy. "
        f"The interval of a trial's speedup holds 1 in {_held(own)} of {len(own)} trials of `noop`."
    )


def correctness_trials() -> Iterator[Trial]:
    """Yield the trials of the runs without times."""
    for archive in kept.CORRECTNESS:
        for folder in sorted(kept.unpacked(archive).iterdir()):
            yield from read_run(folder).trials


def correctness() -> str:
    """Return how many kernels are right on every case of an H200, and in how many of the cases that tasks have now."""
    right, passed = set[tuple[str, str]](), set[tuple[str, str, str]]()
    tasks = {task.id: task for folder in CORPORA for task in load_corpus(folder)}
    known = {task.content_hash: task_versions.version_of(task) for task in tasks.values()}
    known |= task_versions.read_versions(kept.VERSIONS)
    for trial in correctness_trials():
        if trial.evaluation is None or not outcome_of_trial(trial).solves:
            raise ValueError(f"{trial.agent} of {trial.task} is not right on every case of an H200")
        right.add((trial.agent, trial.task))
        old, cases = known.get(trial.task_hash), trial.evaluation.cases
        for case in task_versions.held_cases(old, tasks[trial.task], cases, timed=False):
            if case.candidate is Status.PASSED:
                passed.add((trial.agent, trial.task, case.label))
    total = sum(len({case.label for case in tasks[name].cases}) for _, name in right)
    return (
        f"{len(right)} baselines and experts are right on every case that their tasks had, on an H200, without times. "
        f"They passed {len(passed):,} of the {total:,} cases that these tasks have now."
    )


def by_type() -> str:
    """Return the table of experts by task type: what they gain, and what was measured."""
    run, credited = kept.run(kept.FULL), defaultdict(list)
    for one in credits(run):
        if one.task not in run.info.latency_bound:
            credited[one.task.split("/")[0]].append(one.measured)
    lines = [
        "| task type | tasks | experts | gain | experts' speedups as measured |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, found in sorted(credited.items()):
        gain = _gain(_row(EXPERT, kind))
        mean = f"{geometric_mean(found):.2f}×"
        lines.append(f"| `{kind}` | {gain.tasks} | {len(found)} | {formats.quantity(gain, Unit.FACTOR)} | {mean} |")
    return "\n".join(lines)


def self_timing() -> str:
    """Return how far a kernel is from itself, in cases that are long enough."""
    found = [timing for _, timing in _own()[LONG]]
    errors, held = _errors(found), _held([one.speedup for one in found])
    return (
        f"In the kept run on H200s a kernel's speedup over itself is within {_percent(statistics.median(errors))} of 1 "
        f"in half of {len(found):,} cases. These take 20 µs and more. At worst it is {_percent(max(errors), 1)} off. "
        f"The 95 % interval holds 1 in {_percent(held / len(found), 1)} of them."
    )


def self_timing_table() -> str:
    """Return deviations from 1, and how often intervals hold it, by latency."""
    heads = ("baseline latency", "cases", "median", "above 1 %", "above 2 %", "worst", "hold 1", "half width, median")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for (low, high), cases in _own().items():
        timed = [timing for _, timing in cases]
        errors, held = _errors(timed), _held([one.speedup for one in timed])
        task, worst = max(cases, key=lambda one: _errors([one[1]]))
        cells = [
            accuracy.named(low, high),
            str(len(cases)),
            _percent(statistics.median(errors)),
            *(str(sum(error > limit for error in errors)) for limit in (0.01, 0.02)),
            f"{_percent(max(errors), 1)} (`{task.rsplit('/', 1)[1]}`{'; noisy' if worst.noisy else ''})",
            _percent(held / len(timed), 1),
            _percent(statistics.median(one.speedup.half_width for one in timed)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def drift() -> str:
    """Return how far a baseline beside a candidate is from the same alone."""
    timed = [timing for *_, timing in accuracy.timed_cases(kept.run(kept.FULL).trials)]
    alone = [(one, one.alone_ms.value) for one in timed if one.alone_ms and one.baseline_ms.value >= LONG[0]]
    found = [abs(accuracy.interleaved_ms(one) / ms - 1) for one, ms in alone]
    cuts = statistics.quantiles(found, n=100, method="inclusive")
    return (
        f"Of {len(found):,} cases of 20 µs and more, nine in ten are within {_percent(cuts[89], 1)} "
        f"and 99 in a hundred within {_percent(cuts[98], 1)}."
    )


def cost() -> str:
    """Return the seconds of an evaluation."""
    (own, added), (expert, _) = _seconds(BASELINE), _seconds(EXPERT)
    return (
        "In the kept run on H200s the seen cases of a baseline kernel take "
        f"{statistics.median(own):.1f} s in the median. Those of an expert take {statistics.median(expert):.1f} s, "
        f"and held-out cases {statistics.median(added):.1f} s more."
    )


def _row(agent: str, task_type: str = ALL) -> SummaryRow:
    rows = summary_table(kept.run(kept.FULL)).rows
    return next(row for row in rows if (row.agent, row.task_type) == (agent, task_type))


def _gain(row: SummaryRow) -> Quantity:
    gain = row.measures["gain"]
    if gain is None:
        raise ValueError(f"{row.agent} has no gain")
    return gain


def _own() -> dict[tuple[float, float], list[tuple[str, CaseTiming]]]:
    """Return the timings of kernels against themselves by band of latency, each with its task."""
    trials = [trial for trial in kept.run(kept.FULL).trials if trial.agent == BASELINE]
    cases = [(trial.task, timing) for trial, _, timing in accuracy.timed_cases(trials)]
    return {band: [one for one in cases if band[0] <= one[1].baseline_ms.value < band[1]] for band in accuracy.BANDS_MS}


def _errors(timed: Sequence[CaseTiming]) -> list[float]:
    return [abs(one.speedup.value - 1) for one in timed]


def _held(ratios: Sequence[Estimate]) -> int:
    return sum(one.low <= 1 <= one.high for one in ratios)


def _seconds(agent: str) -> tuple[list[float], list[float]]:
    """Return the seconds of each evaluation of an agent: of its gates, and of its held-out stage."""
    spent = [one.evaluation.seconds for one in kept.run(kept.FULL).trials if one.agent == agent and one.evaluation]
    gated = [sum(one.get(stage, 0.0) for stage in accuracy.GATES) for one in spent]
    return gated, [one[Stage.HELDOUT] for one in spent if Stage.HELDOUT in one]


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


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


def credit_page(run: RunRecords) -> str:
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
