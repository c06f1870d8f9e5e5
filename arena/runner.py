"""A run: tasks × agents × attempts, one record each, safe to interrupt and to resume."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

import arena
from arena import records
from arena.agents import make_agent
from arena.agents.base import Agent, Submission, Workspace
from arena.errors import InfrastructureError, UsageError
from arena.judge.messages import Options, Progress
from arena.model.environment import Environment
from arena.model.record import Evaluation, RunInfo, Trial
from arena.model.task import Task
from arena.model.verdict import Status
from arena.runconfig import RunConfig
from arena.sharing import share_out
from arena.taskfile.corpus import HELDOUT, TASKS, load_corpus, load_task, select, task_ids

SUBMISSIONS = "submissions"
TrialKey = tuple[str, str, int]
"""Agent, task id, attempt."""


class Evaluator(Protocol):
    """Whoever judges candidates: a judge process here, or one on another machine."""

    @property
    def environment(self) -> Environment:
        """Where it measures."""

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
    ) -> Evaluation:
        """Evaluate a candidate file; raises `InfrastructureError` where no verdict can be given."""

    def abandon(self) -> None:
        """Stop at once, whatever is being evaluated."""


class Watcher(Protocol):
    """Told what happens, in order to show it; changes nothing. Trials side by side are told of from threads."""

    def planned(self, total: int, recorded: int) -> None:
        """So many trials there are, so many have a record already."""

    def started(self, trial: TrialKey) -> None:
        """A trial begins."""

    def progress(self, trial: TrialKey, progress: Progress) -> None:
        """Where its evaluation is."""

    def finished(self, trial: Trial) -> None:
        """Its record is on disk."""


@dataclass(frozen=True)
class Plan:
    """A configuration with its selectors resolved."""

    config: RunConfig
    tasks: Mapping[str, Task]
    agents: Mapping[str, Agent]
    options: Options

    def info(self, environment: Environment) -> RunInfo:
        """The head of the run's folder."""
        return RunInfo(
            run=self.config.name,
            started_at=_now(),
            environment=environment,
            agents=tuple(self.agents),
            tasks=tuple(self.tasks),
            attempts=self.config.attempts,
            config=self.config.path,
            config_text=self.config.text,
            arena_version=arena.__version__,
        )


def plan_run(config: RunConfig, tasks_root: Path = TASKS) -> Plan:
    """Load the whole corpus (one bad file fails it), select tasks, and make the agents."""
    corpus = {task.id: task for task in load_corpus(tasks_root)}
    chosen = select(tuple(corpus), config.tasks)
    if config.heldout is not None:
        corpus.update({name: load_task(corpus[name].path, _fresh_cases(config.heldout, name)) for name in chosen})
    agents = {spec.name: make_agent(spec) for spec in config.agents}
    options = Options(**config.evaluation)  # type: ignore[arg-type]
    return Plan(config, {task_id: corpus[task_id] for task_id in chosen}, agents, options)


def run(plan: Plan, folder: Path, evaluators: Sequence[Evaluator], watcher: Watcher) -> records.Run:
    """Run every planned trial that has no record yet; an interrupted run goes on where it stopped.

    As many trials run side by side as there are evaluators.
    """
    for evaluator in evaluators:
        info = _open(plan, folder, evaluator.environment)
    missing = [key for key in info.planned if not _settled(records.trial_path(folder, *key))]
    watcher.planned(len(info.planned), len(info.planned) - len(missing))

    def one(key: TrialKey, evaluator: Evaluator) -> Trial:
        watcher.started(key)
        return _trial(plan, folder, info, key, evaluator, watcher)

    for trial in share_out(missing, evaluators, one, lambda evaluator: evaluator.abandon()):
        records.write_trial(folder, trial)
        watcher.finished(trial)
    return records.read_run(folder)


def evaluate_file(
    task: Task, candidate: Path, options: Options, evaluator: Evaluator, on_progress: Callable[[Progress], None]
) -> Evaluation:
    """Evaluate one file outside of any run."""
    if not candidate.is_file():
        raise UsageError(f"{candidate}: no such file")
    return evaluator.evaluate(task.path, candidate, options, on_progress)


def _fresh_cases(folder: Path, task_id: str) -> Path:
    path = folder / task_id / HELDOUT
    if not path.is_file():
        raise UsageError(f"{path} is missing: `arena heldout sample` writes one for every task it is given")
    return path


def find_task(name: str, tasks_root: Path = TASKS) -> Task:
    """One task by id, bare name or folder; raises `UsageError` where the name fits none or several."""
    if (Path(name) / "task.yaml").is_file():
        return load_task(Path(name))
    found = select(task_ids(tasks_root), [name])
    if len(found) > 1:
        raise UsageError(f"{name!r} is the name of several tasks: {', '.join(found)}")
    return load_task(tasks_root / found[0])


def _open(plan: Plan, folder: Path, environment: Environment) -> RunInfo:
    """The head of a new run, or of the one being resumed, which must be the same run."""
    info = plan.info(environment)
    if not (folder / records.HEAD).exists():
        records.write_head(folder, info)
        return info
    old = records.read_head(folder)
    if old.planned != info.planned:
        raise UsageError(
            f"{folder} holds a run of other tasks, agents or attempts; "
            "give this one another --name, or remove the folder with `arena clean`"
        )
    if not old.environment.comparable_with(environment):
        raise UsageError(f"{folder} was begun on {old.environment.device.name}; resume it there, or use another --name")
    return old


def _settled(path: Path) -> bool:
    """Whether a record stands: a harness failure is kept for the report, but tried again on resume."""
    return path.is_file() and records.read_trial(path).status is not Status.HARNESS_ERROR


def _trial(plan: Plan, folder: Path, info: RunInfo, key: TrialKey, evaluator: Evaluator, watcher: Watcher) -> Trial:
    agent, task_id, attempt = key
    task = plan.tasks[task_id]
    started, clock = _now(), time.monotonic()
    base = Trial(
        run=info.run,
        task=task.id,
        task_type=task.task_type,
        task_hash=task.content_hash,
        agent=agent,
        attempt=attempt,
        status=Status.NOTHING_SUBMITTED,
        environment=evaluator.environment,
        started_at=started,
        seconds=0.0,
    )
    with tempfile.TemporaryDirectory(prefix="arena-workspace-") as place:
        try:
            submission = plan.agents[agent].work(Workspace(Path(place), task, attempt))
            _keep(submission, folder, key)  # first: a harness that fails must not lose an agent's work
            trial = _judged(base, submission, plan, task, evaluator, watcher)
        except InfrastructureError as problem:
            trial = replace(base, status=Status.HARNESS_ERROR, detail=str(problem))
    return replace(trial, seconds=time.monotonic() - clock)


def _judged(
    base: Trial, submission: Submission, plan: Plan, task: Task, evaluator: Evaluator, watcher: Watcher
) -> Trial:
    if submission.candidate is None:
        return replace(base, detail=submission.detail)
    fresh = None if plan.config.heldout is None else _fresh_cases(plan.config.heldout, task.id)
    progress = partial(watcher.progress, base.key)
    evaluation = evaluator.evaluate(task.path, submission.candidate, plan.options, progress, fresh)
    gate = next((v for v in evaluation.verdicts if v.status is evaluation.status), None)
    return replace(
        base,
        status=evaluation.status,
        detail=gate.detail if gate else "",
        evaluation=evaluation,
        environment=evaluation.environment,
    )


def _keep(submission: Submission, folder: Path, key: TrialKey) -> None:
    """Keep what was handed in beside the records, laid out as the `replay` agent reads it."""
    if submission.candidate is not None:
        agent, task, attempt = key
        place = folder / SUBMISSIONS / agent / task / str(attempt)
        place.mkdir(parents=True, exist_ok=True)
        (place / submission.candidate.name).write_bytes(submission.candidate.read_bytes())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
