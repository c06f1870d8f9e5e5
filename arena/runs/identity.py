"""What recorded trials depend on: whether a run folder is of the planned run, and which trials still stand.

Used by the runner before it starts, and by the command line to see that nothing is left to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from arena.agents.base import Agent
from arena.errors import UsageError
from arena.results.record import RunInfo, Trial
from arena.results.verdict import Status
from arena.task.definition import Task
from arena.task.options import Options

_RENAMED = {"only": "case"}
"""options by their names in older heads"""
_PACKAGE, _JUDGE = "arena", "judge"
_NAMES = {_JUDGE: "the judge", _PACKAGE: "arena"}
_ADVICE = "give this run another name (`--name`, in Python `name=`), or remove the folder with `arena clean`"


def described(options: Options) -> dict[str, object]:
    """Return evaluation options as the head of a run folder stores them."""
    return dict(msgspec.json.decode(msgspec.json.encode(options)))


def recorded(evaluation: Mapping[str, object]) -> dict[str, object]:
    """Return options as the head of a run folder has them, by today's names; defaults for what it does not say."""
    renamed = {_RENAMED.get(name, name): value for name, value in evaluation.items()}
    return {**described(Options()), **renamed}


def require_same(old: RunInfo, new: RunInfo, folder: Path) -> None:
    """Raise `UsageError` unless a folder was begun with these trials or fewer, and with the same evaluation options.

    Heads of older versions do not say which options they had; for these, options are not compared. One that an older
    version did not have counts as left open.
    """
    left_out = _left_out(old, new)
    if left_out:
        raise UsageError(
            f"{folder} also holds {left_out}, which this command leaves out. A run can grow: name these too, "
            f"or {_ADVICE}"
        )
    changes = ", ".join(_changes(recorded(old.evaluation), recorded(new.evaluation))) if old.evaluation else ""
    if changes:
        raise UsageError(f"{folder} was recorded with other evaluation options: {changes}; {_ADVICE}")


def grown(old: RunInfo, new: RunInfo) -> RunInfo:
    """Return the head of a run that goes on with more agents, tasks or attempts; `old` where there are no more."""
    if old.planned == new.planned:
        return old
    used = {**new.used, **old.used}
    return replace(
        new, started_at=old.started_at, environment=old.environment, arena_version=old.arena_version, used=used
    )


def _left_out(old: RunInfo, new: RunInfo) -> str:
    """Say which recorded or planned trials of a run a new plan does not have; empty: none."""
    if old.open_ended is not new.open_ended:
        return "episodes of `arena serve`"
    if {*old.planned} <= {*new.planned}:
        return ""
    kinds = {"agent": (old.agents, new.agents), "task": (old.tasks, new.tasks)}
    for kind, (before, now) in kinds.items():
        missing = [name for name in before if name not in now]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            return f"{kind} {missing[0]}{more}"
    return f"{old.attempts} attempts" if old.attempts > new.attempts else "another selection of trials"


def differences(old: RunInfo, new: RunInfo) -> list[str]:
    """Return what made a run and is different now: judge, libraries, compilers, agents' programs and limits.

    What a head of an older version does not say is not compared. Where both name their judge, code that decides no
    verdict is not.
    """
    before, now = old.environment.versions, new.environment.versions
    names = [name for name in sorted(before) if name in now and before[name] != now[name]]
    names = [name for name in names if name != _PACKAGE or _JUDGE not in before]
    found = [f"{_NAMES.get(name, name)} changed: {before[name]} → {now[name]}" for name in names]
    for agent, used in new.used.items():
        began = old.used.get(agent)
        if began is None:
            continue
        if began.program != used.program:
            found.append(f"the program or definition of agent {agent} changed: {began.program} → {used.program}")
        one, two = (asdict(limits) if limits else {} for limits in (began.limits, used.limits))
        changes = ", ".join(_changes(one, two))
        if changes:
            found.append(f"limits of agent {agent} changed: {changes}")
    return found


def mixing(folder: Path, differing: Sequence[str]) -> str:
    """Return the message for a folder that something else began."""
    return (
        f"since {folder} was begun, {'; '.join(differing)}. Numbers of two judges or two agents do not belong in one "
        f"run: {_ADVICE}. `--allow-mixed` (in Python `allow_mixed=True`) goes on, and reports mark the run as mixed"
    )


def outdated(
    trials: Sequence[Trial], tasks: Mapping[str, Task], agents: Mapping[str, Agent]
) -> dict[tuple[str, str, int], str]:
    """Return the keys of trials whose task or candidate has changed since they were recorded, each with what changed.

    Raises:
        UsageError: one of them is an agent's session, which is not repeated without being asked for.
    """
    found = {}
    for trial in trials:
        change = _change(trial, tasks[trial.task], agents[trial.agent])
        if change and agents[trial.agent].limits is not None:
            raise UsageError(f"{trial.agent} on {trial.task}: {change} since its session; {_ADVICE}")
        if change:
            found[trial.key] = change
    return found


def _change(trial: Trial, task: Task, agent: Agent) -> str:
    if trial.status is Status.HARNESS_ERROR:
        return ""
    if trial.task_hash != task.content_hash:
        return "the task has changed"
    if agent.limits is not None:
        return ""
    file = agent.candidate(task, trial.attempt)
    now = hashlib.sha256(file.read_bytes()).hexdigest() if file is not None else ""
    recorded = trial.evaluation.candidate_hash if trial.evaluation is not None else ""
    return "" if now == recorded else "the candidate has changed"


def _changes(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield f"{key} {old.get(key)} → {new.get(key)}"
