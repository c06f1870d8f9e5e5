"""All episodes of a server: opened, continued after a restart, finished with a record each."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path

from msgspec import structs

from arena.errors import UsageError
from arena.processes.scratch import scratch
from arena.results.effort import Effort
from arena.results.record import Evaluation, RunInfo, Trial
from arena.results.session import Ending, Evaluated, Limits, Session
from arena.results.verdict import Status
from arena.runs import records
from arena.runs.identity import described, differences, mixing, require_same
from arena.runs.private_draw import drawn, private_file, secret_seed
from arena.runs.runner import now
from arena.runs.serve.clients import Caller, ClientAccount, Clients, local, recorded_name
from arena.runs.serve.episode import Episode, EpisodeClock
from arena.runs.serve.journal import EpisodeJournal, EpisodeState
from arena.runs.serve.views import EpisodeView, Final, ServedTask, ServerView, Step, TaskView, task_view
from arena.runs.service.judge_pool import JudgePool
from arena.runs.service.judge_queue import Owner
from arena.runs.service.trial import TrialService
from arena.task.corpus.corpora import Corpora
from arena.task.corpus.split import TaskSplit, tasks_of
from arena.task.definition import Task
from arena.task.options import Options
from arena.version import version

_FIRST_GUESS_S = 10.0
IsGone = Callable[[], bool]
"""whether whoever asked waits no more"""


class UnknownName(Exception):
    """There is no task or episode of this name. The message says which."""


class Busy(Exception):
    """As many evaluations wait as may; `retry_after_s` is when a place is likely to be free."""

    def __init__(self, capacity: int, retry_after_s: int) -> None:
        super().__init__(f"{capacity} evaluations are judged or wait already; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class ServeSettings:
    """What a server offers.

    `options` are those of final verdicts, and of steps but for their effort; `capacity`: evaluations that are judged or
    wait at once, of all clients together.
    """

    folder: Path
    corpora: Corpora
    tasks: tuple[str, ...]
    options: Options
    limits: Limits
    capacity: int
    clients: tuple[ClientAccount, ...] = ()
    """none: one, whose tokens are made up"""
    allow_mixed: bool = False
    """go on with a folder that another judge began"""
    private_heldout: bool = False
    """whether each episode has held-out cases of its own in place of the task's"""

    @property
    def config(self) -> str:
        """Return what the head of the run folder says of its episodes."""
        return "arena serve --private-heldout" if self.private_heldout else "arena serve"


@dataclass
class _Open:
    """An episode that has not finished."""

    state: EpisodeState
    episode: Episode
    task: Task


@dataclass
class Episodes:
    """Thread-safe. Begin it with `opened`, which holds the run folder's lock."""

    settings: ServeSettings
    pool: JudgePool
    info: RunInfo
    journal: EpisodeJournal
    clients: Clients
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _tasks: dict[str, Task] = field(default_factory=dict)
    _views: dict[str, TaskView] = field(default_factory=dict)
    _open: dict[str, _Open] = field(default_factory=dict)
    _finished: dict[str, EpisodeState] = field(default_factory=dict)
    _attempts: dict[tuple[str, str], int] = field(default_factory=dict)
    _named: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """episodes by agent, as records name it, task and seed"""
    _waiting: int = 0
    _judged: int = 0
    _judged_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def restore(self) -> None:
        """Go on with the episodes that an earlier server left in this folder."""
        for state in self.journal.states():
            self._index(state)
            self._count(state)
            if self.journal.is_recorded(state):
                self._finished[state.episode] = state
                continue
            try:
                task = self._task(state.task)
            except UnknownName:
                raise UsageError(
                    f"{self.settings.folder} has an unfinished episode of {state.task}, which is not served now: "
                    "serve that task too, or under another --name"
                ) from None
            if task.content_hash != state.task_hash:
                raise UsageError(
                    f"{state.task} has changed since episode {state.episode} began; serve under another --name"
                )
            begun = self._begun(state, task)
            for evaluated in state.evaluations:
                begun.episode.restore(self.journal.kernel(state.episode, evaluated.number), evaluated)

    def tasks(self, split: TaskSplit) -> list[ServedTask]:
        """Return the tasks that are served, of one split of the corpus."""
        folders = {name: self.settings.corpora.folders[name] for name in self.settings.tasks}
        held = set(tasks_of(TaskSplit.EVALUATION, folders))
        lines = [
            ServedTask(name, name.split("/")[0], TaskSplit.EVALUATION if name in held else TaskSplit.TRAIN)
            for name in folders
        ]
        return [line for line in lines if split in (TaskSplit.ALL, line.split)]

    def task(self, name: str) -> TaskView:
        """Describe a task. Raises `UnknownName`."""
        task = self._task(name)
        with self._lock:
            if task.id not in self._views:
                self._views[task.id] = task_view(task, self.pool.environment, self.settings.limits)
            return self._views[task.id]

    def begin(self, caller: Caller, task_name: str, agent: str, seed: int | None, effort: Effort | None) -> EpisodeView:
        """Begin an episode, or return the client's one of this agent, task and seed.

        Raises:
            UnknownName: no such task is served, or it has no private cases where they are asked for.
            OverLimit: the client, or its agents, may begin no more.
            StorageError: the episode could not be stored.
        """
        task, client = self._task(task_name), caller.client
        agent = recorded_name(client, agent)
        with self._lock:
            known = self._named.get((agent, task.id, seed)) if seed is not None else None
            if known is not None:
                return self.status(caller, known)
            draw_seed = self._draw_seed(task)
            self.clients.spend(client, episodes=1, **({"agent_episodes": 1} if caller.is_agent else {}))
            attempt = self._attempts.get((agent, task.id), 0) + 1
            state = EpisodeState(
                secrets.token_hex(8), task.id, task.content_hash, agent, attempt, seed,
                effort or self.settings.options.effort, now(), client=client.name, by_agent=caller.is_agent,
                draw_seed=draw_seed,
            )  # fmt: skip
            self.journal.write(state)
            self._index(state)
            self._begun(state, task)
        return self.status(caller, state.episode)

    def evaluate(self, caller: Caller, episode: str, kernel: bytes, profile: bool, is_gone: IsGone = bool) -> Step:
        """Evaluate a kernel on seen cases.

        Raises:
            UnknownName: the client has no such episode.
            EpisodeOver, OverLimit: a limit is reached.
            NoVerdict: the harness failed, or whoever asked is gone.
            Busy, TooMany: too much is judged or waits already.
        """
        one, client = self._find(caller, episode), caller.client
        owner, place = Owner(client.name, is_gone), partial(self._place, client, len(kernel))
        return one.episode.evaluate(kernel, profile, owner, place, partial(self._keep_step, one, kernel))

    def finish(self, caller: Caller, episode: str, kernel: bytes | None, is_gone: IsGone = bool) -> Final:
        """Give the final verdict, and write the record. Raises as `evaluate` does."""
        one, client = self._find(caller, episode), caller.client
        owner, place = Owner(client.name, is_gone), partial(self._place, client, len(kernel or b""))
        final = one.episode.finish(kernel, owner, place, partial(self._keep_final, one))
        with self._lock:
            self._finished[episode] = self._open.pop(episode).state
        return final

    def status(self, caller: Caller, episode: str) -> EpisodeView:
        """Return where an episode is. Raises `UnknownName`."""
        state = self._find(caller, episode).state
        with self._lock:
            finished = episode in self._finished
        speedups = [one.speedup for one in state.evaluations if one.speedup is not None]
        limits = self.settings.limits
        return EpisodeView(
            episode=state.episode,
            task=state.task,
            agent=state.agent,
            attempt=state.attempt,
            seed=state.seed,
            effort=state.effort,
            evaluations=len(state.evaluations),
            left=0 if finished else max(0, limits.evaluations - len(state.evaluations)),
            best_speedup=max(speedups, default=None),
            minutes=limits.wall_clock_s / 60,
            finished=finished,
        )

    def overview(self, caller: Caller | None = None) -> ServerView:
        """Return what the server is doing, and what the caller has used of its limits."""
        device = self.pool.environment.device
        with self._lock:
            return ServerView(
                run=self.info.run,
                device=f"{device.name} ({device.arch})",
                judges=len(self.pool.environments),
                tasks=len(self.settings.tasks),
                open=len(self._open),
                finished=len(self._finished),
                waiting=self._waiting,
                capacity=self.settings.capacity,
                evaluations_an_hour=round(3600 * self._judged / max(time.monotonic() - self._began, 1e-9), 1),
                used=None if caller is None else self.clients.usage(caller.client),
            )

    def _task(self, name: str) -> Task:
        with self._lock:
            if name not in self._tasks:
                found = [one for one in self.settings.tasks if name in (one, one.rpartition("/")[2])]
                if len(found) != 1:
                    raise UnknownName(f"{len(found)} served tasks are called {name[:200]!r}; GET /tasks lists them")
                self._tasks[name] = self._tasks.get(found[0]) or self.settings.corpora.load(found[0])
            return self._tasks[name]

    def _find(self, caller: Caller, episode: str) -> _Open:
        """Return an episode of the caller's; another client's is as unknown as one that never was."""
        with self._lock:
            found = self._open.get(episode)
            state = found.state if found else self._finished.get(episode)
            if state is not None and state.client == caller.client.name:
                return found or self._ended(state)
        raise UnknownName(f"there is no episode {episode[:80]!r}; POST /episodes begins one")

    def _ended(self, state: EpisodeState) -> _Open:
        """A finished episode, which answers that it is over."""
        one = self._made(state, self._task(state.task))
        one.episode.end("the episode is finished")
        return one

    def _begun(self, state: EpisodeState, task: Task) -> _Open:
        self._open[state.episode] = self._made(state, task)
        return self._open[state.episode]

    def _made(self, state: EpisodeState, task: Task) -> _Open:
        settings, clock = self.settings, EpisodeClock(state.active_s)
        options = structs.replace(settings.options, effort=state.effort)
        service = TrialService(task, options, self.pool, settings.limits, clock.active_s)
        return _Open(state, Episode(service, partial(self._final, task, state), settings.limits, clock), task)

    def _draw_seed(self, task: Task) -> int | None:
        """Return the seed of an episode's private cases; None where it has none."""
        if not self.settings.private_heldout:
            return None
        seed = secret_seed()
        try:
            drawn(task, seed, self.pool, self.settings.options)
        except UsageError as problem:
            raise UnknownName(f"{problem}, and this server draws private held-out cases") from None
        return seed

    def _heldout(self, task: Task, state: EpisodeState) -> Path | None:
        """Return the file of an episode's private cases, which its first verdict draws; None where it has none."""
        if state.draw_seed is None:
            return None
        file = self.journal.heldout(state.episode)
        if not file.is_file():
            text = private_file(task, state.draw_seed, self.pool, self.settings.options)
            records.write_bytes(file, text.encode())
        return file

    def _final(self, task: Task, state: EpisodeState, kernel: bytes, owner: Owner) -> Evaluation:
        heldout = self._heldout(task, state)
        with scratch("episode") as place:
            file = Path(place) / task.task_type.kernel_file
            file.write_bytes(kernel)
            options = structs.replace(self.settings.options, heldout=True)
            return self.pool.evaluate(task, file, options, heldout=heldout, owner=owner)

    def _keep_step(self, one: _Open, kernel: bytes, evaluated: Evaluated) -> None:
        self.journal.write_kernel(one.state.episode, evaluated.number, kernel)
        state = structs.replace(
            one.state, active_s=one.episode.clock.active_s(), evaluations=[*one.state.evaluations, evaluated]
        )
        self.journal.write(state)
        one.state = state

    def _keep_final(self, one: _Open, kernel: bytes | None, evaluation: Evaluation | None) -> None:
        """Write what was handed in and then its record, whose presence says that the episode is finished."""
        state, folder = one.state, self.settings.folder
        if kernel is not None:
            place = records.submission_folder(folder, *state.key)
            records.write_bytes(place / one.task.task_type.kernel_file, kernel)
        records.write_trial(folder, self._trial(one, evaluation))

    def _trial(self, one: _Open, evaluation: Evaluation | None) -> Trial:
        state, failed = one.state, evaluation.failure if evaluation is not None else None
        nothing = "no kernel was given, and none had passed an evaluation" if evaluation is None else ""
        return Trial(
            run=self.info.run,
            task=state.task,
            task_type=one.task.task_type,
            task_hash=state.task_hash if evaluation is None else evaluation.task_hash,
            agent=state.agent,
            attempt=state.attempt,
            status=Status.NOTHING_SUBMITTED if evaluation is None else evaluation.status,
            environment=self.pool.environment if evaluation is None else evaluation.environment,
            started_at=state.started_at,
            seconds=sum(evaluated.seconds for evaluated in state.evaluations),
            detail=failed.detail if failed else nothing,
            evaluation=evaluation,
            session=_session(state, one.episode.clock.active_s()),
        )

    def _index(self, state: EpisodeState) -> None:
        place = state.agent, state.task
        self._attempts[place] = max(self._attempts.get(place, 0), state.attempt)
        if state.seed is not None:
            self._named[(*place, state.seed)] = state.episode

    def _count(self, state: EpisodeState) -> None:
        """Count what an episode of before a restart has used."""
        self.clients.count(
            state.client,
            episodes=1,
            agent_episodes=int(state.by_agent),
            evaluations=len(state.evaluations) + int(self.journal.is_recorded(state)),
            kernel_bytes=self.journal.kernel_bytes(state),
        )

    @contextmanager
    def _place(self, client: ClientAccount, kernel_bytes: int) -> Iterator[None]:
        """Hold a place among those who are judged or wait for a judge; count the evaluation and its kernel."""
        with self._lock:
            if self._waiting >= self.settings.capacity:
                mean_s = self._judged_s / self._judged if self._judged else _FIRST_GUESS_S
                raise Busy(self.settings.capacity, max(1, ceil(mean_s)))
            self._waiting += 1
        began = time.monotonic()
        try:
            with (
                self.clients.held(client, "places"),
                self.clients.spent(client, evaluations=1, kernel_bytes=kernel_bytes),
            ):
                yield
            with self._lock:
                self._judged += 1
                self._judged_s += time.monotonic() - began
        finally:
            with self._lock:
                self._waiting -= 1


@contextmanager
def opened(settings: ServeSettings, pool: JudgePool) -> Iterator[Episodes]:
    """Begin a run folder for episodes, or go on with the one that is there, and keep it locked.

    Raises `UsageError` where it is another run's, another process serves it, or its tasks have changed.
    """
    with records.locked(settings.folder):
        records.put_aside_broken(settings.folder)
        info = RunInfo(
            run=settings.folder.name,
            started_at=now(),
            environment=pool.environment,
            agents=(),
            tasks=(),
            attempts=0,
            config=settings.config,
            arena_version=version(),
            evaluation=described(settings.options),
            open_ended=True,
        )
        if (settings.folder / records.HEAD).exists():
            info = _same(records.read_head(settings.folder), info, settings.folder, allow_mixed=settings.allow_mixed)
        else:
            records.write_head(settings.folder, info)
        clients = Clients(settings.clients or (local(settings.capacity),))
        episodes = Episodes(settings, pool, info, EpisodeJournal(settings.folder), clients)
        episodes.restore()
        yield episodes


def _same(old: RunInfo, new: RunInfo, folder: Path, *, allow_mixed: bool) -> RunInfo:
    if not old.open_ended:
        raise UsageError(f"{folder} holds a run of `arena run`; serve under another --name")
    if old.config != new.config:
        raise UsageError(f"{folder} was begun by `{old.config}`, this is `{new.config}`; serve under another --name")
    require_same(old, new, folder)
    differing = differences(old, new)
    if differing and not allow_mixed:
        raise UsageError(mixing(folder, differing))
    if not old.environment.comparable_with(new.environment):
        raise UsageError(f"{folder} was begun on {old.environment.device.name}; serve under another --name")
    return old


def _session(state: EpisodeState, active_s: float) -> Session:
    seed = "" if state.seed is None else f", seed {state.seed}"
    private = "" if state.draw_seed is None else f", private held-out cases of seed {state.draw_seed}"
    return Session(
        agent=state.agent,
        version="",
        ending=Ending.FINISHED,
        detail=f"episode {state.episode}{seed}{private}",
        active_s=active_s,
        paused_s=sum(evaluated.seconds for evaluated in state.evaluations),
        isolation="a client of arena serve",
        evaluations=tuple(state.evaluations),
    )


def served(corpora: Corpora, patterns: Sequence[str], split: TaskSplit) -> tuple[str, ...]:
    """Return the tasks of a split that any pattern names. Raises `UsageError` where none is left."""
    chosen = corpora.select(tuple(patterns) or ("*",))
    found = tasks_of(split, {name: corpora.folders[name] for name in chosen})
    if not found:
        raise UsageError(f"none of the {len(chosen)} chosen tasks is in the split {split}")
    return found
