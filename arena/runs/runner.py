"""A run: tasks × agents × attempts, one record each, safe to interrupt and to resume."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import product, zip_longest
from pathlib import Path

from arena.agents import make_agent
from arena.agents.base import Agent, Submission, Workspace
from arena.errors import BrokenRecord, InfrastructureError, StorageError, UsageError
from arena.judge.process.messages import Progress
from arena.processes.scratch import scratch, sweep
from arena.results.environment import Environment
from arena.results.record import SCHEMA_VERSION, AgentUsed, DeviceTasks, RunInfo, Trial
from arena.results.session import Limits, Session
from arena.results.transcripts import transcript_path
from arena.results.verdict import Status
from arena.runs import records
from arena.runs.config import RunConfig
from arena.runs.identity import described, differences, grown, mixing, outdated, require_same
from arena.runs.retry import ended_so
from arena.runs.service.judge_pool import QUEUED_A_GPU, JudgePool
from arena.runs.service.trial import TrialService
from arena.runs.service.workspace import prepare
from arena.runs.sharing import share_out
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.release import corpus_of
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import HELDOUT
from arena.task.definition import Task
from arena.task.options import Options, options_of
from arena.version import own_versions, version

HANDED_IN = "handed_in.json"
TrialKey = tuple[str, str, int]
"""Agent, task id, attempt."""


class Watcher:
    """Is told what happens, in order to show it; shows nothing unless it is overridden. Trials call from threads."""

    def planned(self, total: int, recorded: int) -> None:
        """`total` trials are planned, of which `recorded` have a record already."""

    def started(self, trial: TrialKey) -> None:
        """A trial begins."""

    def progress(self, trial: TrialKey, progress: Progress) -> None:
        """Its evaluation has reached a stage."""

    def finished(self, trial: Trial) -> None:
        """Its record is on disk."""

    def noted(self, text: str) -> None:
        """The user must know this sentence."""


@dataclass(frozen=True)
class RunPlan:
    """A configuration with its selectors resolved."""

    config: RunConfig
    tasks: Mapping[str, Task]
    agents: Mapping[str, Agent]
    options: Options
    selected: tuple[TrialKey, ...] = ()
    """the only trials, where the run is a selection of all agents × tasks × attempts"""
    retry: tuple[str, ...] = ()
    """recorded trials that ended in one of these ways (`retry.endings`) are judged again"""
    limit: int | None = None
    """run at most so many trials now"""
    allow_mixed: bool = False
    """go on with a folder whose trials another judge or another agent's program made"""
    platforms: Mapping[str, str] = field(default_factory=dict)
    """by task, where tasks are measured on several platforms; else all are on that of the configuration"""

    def tasks_of(self) -> dict[str, tuple[str, ...]]:
        """Return the tasks by platform."""
        found: dict[str, tuple[str, ...]] = {}
        for task in self.tasks:
            platform = self.platforms.get(task, self.config.platform)
            found[platform] = (*found.get(platform, ()), task)
        return found

    @cached_property
    def used(self) -> dict[str, AgentUsed]:
        """The agents as they are now, by name."""
        return {name: AgentUsed(agent.program(), agent.limits, agent.calibrates) for name, agent in self.agents.items()}

    @property
    def planned(self) -> tuple[TrialKey, ...]:
        """Every trial of the run."""
        return self.selected or tuple(
            (agent, task, attempt)
            for attempt in range(1, self.config.attempts + 1)
            for task in self.tasks
            for agent in self.agents
        )

    @property
    def has_sessions(self) -> bool:
        """Return whether an agent works in a workspace, rather than handing in files that exist."""
        return any(agent.limits is not None for agent in self.agents.values())

    def info(self, *environments: Environment) -> RunInfo:
        """The head of the run's folder; `environments`: of each platform, in the order of `tasks_of`."""
        devices: list[DeviceTasks] = []
        for environment, tasks in zip(environments, self.tasks_of().values(), strict=False):
            same = [one for one in devices if one.environment.comparable_with(environment)]
            for one in same:
                devices.remove(one)
                tasks = (*one.tasks, *tasks)
            devices.append(DeviceTasks(same[0].environment if same else environment, tasks))
        return RunInfo(
            run=self.config.name,
            started_at=now(),
            environment=environments[0],
            agents=tuple(self.agents),
            tasks=tuple(self.tasks),
            attempts=self.config.attempts,
            config=self.config.path,
            config_text=self.config.text,
            arena_version=version(),
            evaluation=described(self.options),
            latency_bound=tuple(name for name, task in self.tasks.items() if task.latency_bound),
            families={name: task.family for name, task in self.tasks.items()},
            selected=self.selected,
            corpus=corpus_of(self.tasks),
            devices=tuple(devices) if len(devices) > 1 else (),
            used=self.used,
        )


def plan_run(config: RunConfig) -> RunPlan:
    """Load the tasks that the configuration selects, and make its agents."""
    corpora = open_corpora(config.corpora)
    chosen = corpora.select(config.tasks)
    fresh = {name: config.heldout and _fresh_cases(config.heldout, name) for name in chosen}
    tasks = {name: corpora.load(name, fresh[name]) for name in chosen}
    agents = {spec.name: make_agent(spec) for spec in config.agents}
    for spec in config.agents:
        wanted = [(task, attempt) for task in tasks.values() for attempt in range(1, config.attempts + 1)]
        if spec.kind == "replay" and not any(agents[spec.name].candidate(*one) for one in wanted):
            raise UsageError(
                f"agent {spec.name}: {spec.folder} holds candidates for none of the {len(tasks)} tasks; "
                f"expected {spec.folder}/{next(iter(tasks))}/kernel.py or kernel.hip"
            )
    options = options_of(config.evaluation)
    return RunPlan(config, tasks, agents, options, platforms=_platforms(config, tuple(tasks)))


def _platforms(config: RunConfig, tasks: tuple[str, ...]) -> dict[str, str]:
    """By task the platform of the first pattern that matches; raises `UsageError` where none does."""
    matched = [(select(tasks, [pattern]), platform) for pattern, platform in config.platforms]
    found = {task: next((name for ids, name in matched if task in ids), "") for task in tasks if matched}
    if without := [task for task, name in found.items() if not name]:
        raise UsageError(f"{config.path}: `platform` names none for {without[0]}; end it with a pattern '*'")
    return found


def run(
    plan: RunPlan, folder: Path, judges: JudgePool | Mapping[str, JudgePool], watcher: Watcher | None = None
) -> records.RunRecords:
    """Run every planned trial that has no record yet; an interrupted run goes on where it stopped.

    Trials run side by side as the configuration says, else as `side_by_side` does; for judges they take turns.
    `judges`: by platform, where tasks are measured on several. Raises `UsageError` where another process writes this
    folder, and `StorageError` where it cannot be written.
    """
    watcher = watcher or Watcher()
    pools = dict.fromkeys(plan.tasks_of(), judges) if isinstance(judges, JudgePool) else judges
    sweep()
    with records.locked(folder):
        for aside in records.put_aside_broken(folder):
            watcher.noted(f"incomplete record ignored and moved to {aside}")
        info = _open(plan, folder, pools, watcher)
        trials = records.read_run(folder).trials
        changed = outdated(trials, plan.tasks, plan.agents)
        for (agent, task, _), change in changed.items():
            watcher.noted(f"{agent} on {task}: {change} since it was recorded; it runs again")
        missing = _in_turn(plan, _unfinished(info.planned, trials, changed, plan))
        watcher.planned(len(info.planned), len(info.planned) - len(missing))
        missing = missing[: plan.limit]
        by_task = {task: pools[platform] for platform, tasks in plan.tasks_of().items() for task in tasks}
        stages = Stages(plan, folder, info, by_task, watcher)
        places = range(plan.config.jobs or side_by_side(plan, pools))
        for trial in share_out(missing, places, lambda key, _: stages.trial(key), lambda _: _cancel(pools)):
            records.write_trial(folder, trial)
            watcher.finished(trial)
        return records.read_run(folder)


def side_by_side(plan: RunPlan, pools: Mapping[str, JudgePool]) -> int:
    """How many trials go on at once: one for each judge. A GPU has more, so that it need not wait for compilers.

    But not where agents have sessions, which stand still while another's kernel is measured.
    """
    judges = [environment for pool in pools.values() for environment in pool.environments]
    return sum(1 if plan.has_sessions or one.device.emulated else QUEUED_A_GPU for one in judges)


def _in_turn(plan: RunPlan, keys: Sequence[TrialKey]) -> list[TrialKey]:
    """Trials of each platform alternately, so that all of its judges have work."""
    queues = [[key for key in keys if key[1] in tasks] for tasks in plan.tasks_of().values()]
    return [key for keys in zip_longest(*queues) for key in keys if key is not None]


def _cancel(pools: Mapping[str, JudgePool]) -> None:
    for pool in pools.values():
        pool.cancel()


def finished(plan: RunPlan, folder: Path) -> records.RunRecords | None:
    """Return a run that is recorded whole, for these tasks, candidates and options; None where work is left."""
    if not (folder / records.HEAD).is_file():
        return None
    done = records.read_run(folder)
    require_same(done.info, plan.info(done.info.environment), folder)
    more = {*plan.planned} - {*done.info.planned}
    left = more or done.missing or any(not _is_final(trial, plan) for trial in done.trials)
    return None if left or outdated(done.trials, plan.tasks, plan.agents) else done


def left(plan: RunPlan, folder: Path) -> list[TrialKey]:
    """Return the trials that a call would run now, in a folder that need not exist."""
    if not (folder / records.HEAD).is_file():
        return list(plan.planned)[: plan.limit]
    trials = [trial for trial in records.read_run(folder).trials if trial.key in plan.planned]
    changed = outdated(trials, plan.tasks, plan.agents)
    return _unfinished(plan.planned, trials, changed, plan)[: plan.limit]


def _unfinished(
    planned: Sequence[TrialKey], trials: Sequence[Trial], changed: Collection[TrialKey], plan: RunPlan
) -> list[TrialKey]:
    """Return the planned trials without a record that stands."""
    final = {trial.key for trial in trials if _is_final(trial, plan) and trial.key not in changed}
    return [key for key in planned if key not in final]


def since(plan: RunPlan, info: RunInfo) -> list[str]:
    """Return what differs here from what made a run that is complete, as far as is known without a judge."""
    environment = replace(info.environment, versions={**info.environment.versions, **own_versions()})
    return differences(info, plan.info(environment))


def _fresh_cases(folder: Path, task_id: str) -> Path:
    path = folder / task_id / HELDOUT
    if not path.is_file():
        raise UsageError(f"{path} is missing: `arena heldout sample` writes one for every task it is given")
    return path


def _open(plan: RunPlan, folder: Path, pools: Mapping[str, JudgePool], watcher: Watcher) -> RunInfo:
    """The head of a new run, or of the one being resumed, which must be the same run."""
    placed = plan.tasks_of()
    info = plan.info(*(pools[platform].environment for platform in placed))
    if (folder / records.HEAD).exists():
        old = records.read_head(folder)
        require_same(old, info, folder)
        differing = differences(old, info)
        if differing and not plan.allow_mixed:
            raise UsageError(mixing(folder, differing))
        for one in differing:
            watcher.noted(f"since {folder} was begun, {one}; reports mark the run as mixed")
        info = grown(old, info)
        if info is not old:
            watcher.noted(f"{folder} grows from {len(old.planned)} to {len(info.planned)} trials")
            records.write_head(folder, info)
    else:
        records.write_head(folder, info)
    for platform, tasks in placed.items():
        for task, environment in product(tasks, pools[platform].environments):
            if not info.environment_of(task).comparable_with(environment):
                raise UsageError(
                    f"{folder} was begun on {info.environment_of(task).device.name}; "
                    "resume it there, or give this run another name"
                )
    return info


def _is_final(trial: Trial, plan: RunPlan) -> bool:
    """Return whether a record stands: a harness failure is kept for the report, but tried again on resume.

    So is what the plan retries. The work of an agent's session is kept, and judged again.
    """
    return trial.status is not Status.HARNESS_ERROR and not ended_so(trial, plan.retry)


@dataclass(frozen=True)
class HandedIn:
    """What is kept once an agent has finished, so that its work is judged again rather than done again."""

    kernel: str
    """name of the file among the submissions, empty where nothing was handed in"""
    detail: str
    session: Session
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Stages:
    """One trial after the other: the agent works, what it hands in is kept, and judged."""

    plan: RunPlan
    folder: Path
    info: RunInfo
    judge_pools: Mapping[str, JudgePool]
    """by task"""
    watcher: Watcher

    def trial(self, key: TrialKey) -> Trial:
        """Run one trial. A harness that fails makes a record too; raises `StorageError` where none can be kept."""
        self.watcher.started(key)
        agent, task_id, attempt = key
        task, clock = self.plan.tasks[task_id], time.monotonic()
        trial = Trial(
            run=self.info.run,
            task=task.id,
            task_type=task.task_type,
            task_hash=task.content_hash,
            agent=agent,
            attempt=attempt,
            status=Status.NOTHING_SUBMITTED,
            environment=self.judge_pools[task_id].environment,
            started_at=now(),
            seconds=0.0,
            used=self.plan.used[agent],
        )
        try:
            submission = self._kept(key) or self._worked(key, task)
            trial = self._judged(replace(trial, session=submission.session), submission, task)
        except StorageError:
            raise  # no record could be kept, and the next agent's work would be lost as well
        except InfrastructureError as problem:
            trial = replace(trial, status=Status.HARNESS_ERROR, detail=str(problem))
        except OSError as problem:
            raise records.storage_error(problem) or problem from problem
        return replace(trial, seconds=time.monotonic() - clock)

    def _worked(self, key: TrialKey, task: Task) -> Submission:
        """Let the agent work; what it hands in is kept first: a harness that fails must not lose it."""
        agent = self.plan.agents[key[0]]
        with scratch("workspace") as place:
            judges, transcript = self.judge_pools[task.id], transcript_path(self.folder, *key)
            environment = judges.environment
            workspace = Workspace(Path(place), task, key[2], environment, transcript)
            if agent.limits is not None:
                prepare(workspace.folder, task, environment, agent.limits)
            service = TrialService(task, self.plan.options, judges, agent.limits or Limits())
            submission = agent.work(workspace, service)
            return self._keep(submission, key)

    def _keep(self, submission: Submission, key: TrialKey) -> Submission:
        """Keep what was handed in beside the records, laid out as the `replay` agent reads it."""
        kept = submission
        if submission.candidate is not None:
            place = records.submission_folder(self.folder, *key)
            place.mkdir(parents=True, exist_ok=True)
            kept = replace(submission, candidate=place / submission.candidate.name)
            records.write_bytes(place / submission.candidate.name, submission.candidate.read_bytes())
        if submission.session is not None:
            name = kept.candidate.name if kept.candidate else ""
            records.write(self._handed_in(key), HandedIn(name, submission.detail, submission.session))
        return kept

    def _kept(self, key: TrialKey) -> Submission | None:
        """What a session handed in that ended before it could be judged."""
        path = self._handed_in(key)
        if not path.is_file():
            return None
        try:
            known = records.read(path, HandedIn)
        except BrokenRecord:
            aside = records.put_aside(path)
            self.watcher.noted(f"incomplete record ignored and moved to {aside}; the agent works again")
            return None
        kernel = records.submission_folder(self.folder, *key) / known.kernel if known.kernel else None
        return Submission(kernel, known.detail, known.session)

    def _judged(self, trial: Trial, submission: Submission, task: Task) -> Trial:
        if submission.candidate is None:
            return replace(trial, detail=submission.detail)
        heldout = self.plan.config.heldout
        fresh = None if heldout is None else _fresh_cases(heldout, task.id)
        progress = partial(self.watcher.progress, trial.key)
        judges = self.judge_pools[task.id]
        evaluation = judges.evaluate(task, submission.candidate, self.plan.options, progress, fresh)
        failed = evaluation.failure
        return replace(
            trial,
            status=evaluation.status,
            detail=failed.detail if failed else "",
            evaluation=evaluation,
            environment=evaluation.environment,
        )

    def _handed_in(self, key: TrialKey) -> Path:
        return transcript_path(self.folder, *key) / HANDED_IN


def now() -> str:
    """Return the time in UTC, to the second, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
