"""Warnings of a report: what is missing, what the harness broke, what is noisy, each with the next command to type."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.reports.rows import TrialRow
from arena.results.record import RunInfo
from arena.results.verdict import Status
from arena.runs.records import RunRecords, trial_path


@dataclass(frozen=True)
class ReportWarning:
    """One reason to distrust a number: what, which trials or cases, and what to do about it."""

    problem: str
    items: tuple[str, ...]
    next_step: str


def warnings(runs: Sequence[RunRecords], rows: Sequence[TrialRow]) -> list[ReportWarning]:
    """Everything a reader should know before believing the numbers, worst first."""
    found: list[ReportWarning] = []
    for run in runs:
        mine = [row for row in rows if row.run == run.info.run]
        found += _of_run(run, mine)
    return found + list(_between(runs, rows))


def mixture(run: RunRecords) -> tuple[str, ...]:
    """Return by what the trials of a run differ that is the same in one run; empty where it is not mixed."""
    found = []
    versions: dict[str, Counter[str]] = {}
    agents: dict[str, Counter[str]] = {}
    for trial in run.trials:
        for what, text in trial.environment.versions.items():
            versions.setdefault(what, Counter())[text] += 1
        if trial.used is not None:
            agents.setdefault(trial.agent, Counter())[f"{trial.used.program} {trial.used.limits}"] += 1
    compared = {what: counts for what, counts in versions.items() if what != "arena" or "judge" not in versions}
    for what, counts in compared.items():
        if len(counts) > 1:
            found.append(f"{what}: {', '.join(f'{text} in {count} trials' for text, count in counts.items())}")
    for agent, counts in agents.items():
        if len(counts) > 1:
            found.append(
                f"agent {agent}: {len(counts)} programs or limits, in {', '.join(map(str, counts.values()))} trials"
            )
    return tuple(found)


def resume_command(info: RunInfo) -> str:
    """The command that runs what is still missing, but for options; a head that holds no path names the placeholder."""
    config = info.config.strip()
    named = config if config and "\n" not in config and not config.startswith("{") else "CONFIG"
    return f"arena run {shlex.quote(named)} --name {shlex.quote(info.run)}"


def _of_run(run: RunRecords, rows: Sequence[TrialRow]) -> Iterator[ReportWarning]:
    name, resume = run.info.run, f"`{resume_command(run.info)}`, with the options that it had"
    again = f"type `{resume_command(run.info)} --retry {{}}`, with the options that it had"
    mixed = mixture(run)
    if mixed:
        yield ReportWarning(
            f"{name}: mixed, since its trials were made by different judges, agents' programs or limits",
            mixed,
            "judge all of it again under another name: `arena run CONFIG --name NAME`",
        )
    missing = _named(rows, lambda row: row.status is None)
    if missing:
        yield ReportWarning(
            f"{name}: {len(missing)} of {_count(rows, 'planned trial')} without a record", missing, f"type {resume}"
        )
    broken = _named(rows, lambda row: row.status is Status.HARNESS_ERROR, record=True)
    if broken:
        yield ReportWarning(
            f"{name}: the harness failed in {_count(broken, 'trial')}, counted as failed", broken, f"type {resume}"
        )
    skipped = _named(
        rows, lambda row: row.status is Status.PASSED and row.handed_in and not row.heldout_ran, record=True
    )
    if skipped:
        problem = f"{name}: {_count(skipped, 'trial')} passed on seen cases but never tried on held-out ones"
        yield ReportWarning(problem, skipped, again.format("seen-only"))
    stopped = _named(
        rows, lambda row: row.correct and row.status is not Status.PASSED and not row.heldout_ran, record=True
    )
    if stopped:
        problem = f"{name}: {_count(stopped, 'trial')} correct, but stopped by the performance gate before held-out"
        yield ReportWarning(problem, stopped, "read why in their detail; they are in no drop")
    unjudged = _named(rows, lambda row: row.unjudged > 0, record=True)
    if unjudged:
        yield ReportWarning(
            f"{name}: held-out cases without an outcome in {_count(unjudged, 'trial')}",
            unjudged,
            again.format("no-verdict"),
        )
    noisy = tuple(f"{_key(row)}: {case.result.label}" for row in rows for case in row.cases if case.noisy)
    if noisy:
        problem = f"{name}: {_count(noisy, 'case')} stayed noisy, with a wider interval than asked for"
        yield ReportWarning(problem, noisy, f"on a quiet machine, {again.format('noisy')}")
    twice = [f"{_key(row)}: {case.result.label}: {case.doubted}" for row in rows for case in row.cases if case.doubted]
    if twice:
        problem = f"{name}: {_count(twice, 'case')} measured twice, since the first time was not believed"
        yield ReportWarning(
            problem, tuple(twice), "the second time counts; where one agent has most of them, read its kernels"
        )


def _between(runs: Sequence[RunRecords], rows: Sequence[TrialRow]) -> Iterator[ReportWarning]:
    """What differs between runs that stand in one report."""
    hashes: dict[str, set[str]] = {}
    for row in rows:
        if row.task_hash:
            hashes.setdefault(row.task, set()).add(row.task_hash)
    changed = tuple(task for task, seen in hashes.items() if len(seen) > 1)
    if changed:
        yield ReportWarning(
            f"{_count(changed, 'task')} changed between trials", changed, "run all agents on the same tasks again"
        )
    for run in runs[1:]:
        first, other = runs[0].info, run.info
        differing = tuple(_differences(first, other))
        if differing:
            yield ReportWarning(
                f"{first.run} and {other.run} ran under different conditions", differing, "`arena doctor`"
            )


def _differences(first: RunInfo, other: RunInfo) -> Iterator[str]:
    one, two = first.environment, other.environment
    if one.isolation != two.isolation:
        yield f"isolation: {one.isolation}, {two.isolation}"
    if one.device.driver != two.device.driver:
        yield f"driver: {one.device.driver}, {two.device.driver}"
    for name in sorted({*one.versions, *two.versions}):
        if one.versions.get(name) != two.versions.get(name):
            yield f"{name}: {one.versions.get(name, 'none')}, {two.versions.get(name, 'none')}"


def _named(rows: Sequence[TrialRow], holds: Callable[[TrialRow], bool], *, record: bool = False) -> tuple[str, ...]:
    return tuple(_line(row) if record else _key(row) for row in rows if holds(row))


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _line(row: TrialRow) -> str:
    path = trial_path(Path(row.run), row.agent, row.task, row.attempt).as_posix()
    return f"{path}{': ' + row.detail if row.detail and row.status is not Status.PASSED else ''}"


def _key(row: TrialRow) -> str:
    return f"{row.label}, {row.task}, attempt {row.attempt}"
