"""The loop of a trial without an agent's program: read the task, evaluate kernels, finish. docs/evaluate/serve.md."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import structs

from arena.agents.base import EvaluationService
from arena.errors import InfrastructureError
from arena.judge.messages import Options
from arena.model.record import Evaluation
from arena.model.reward import reward
from arena.model.session import Limits
from arena.model.task import Task
from arena.scratch import scratch
from arena.service.episode_view import Final, Step, TaskView, final_of, nothing_submitted, task_view
from arena.service.judge_pool import JudgePool
from arena.service.trial import TrialService

Judged = Callable[[bytes], Evaluation]
"""The final verdict on a kernel: every gate, held-out cases included."""


class EpisodeOver(Exception):
    """The episode takes no more of this. The message says why, and what can still be done."""


class NoVerdict(Exception):
    """The harness failed, which says nothing about the kernel; the call was not counted and may be repeated."""


class StopWatch:
    """Implements `arena.agents.base.Attended` for a client elsewhere: it cannot be stopped, but its clock can."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passed_s, self._since = 0.0, time.monotonic()
        self._pauses = 0

    def pause(self) -> None:
        """Stop the clock."""
        with self._lock:
            if self._pauses == 0:
                self._passed_s += time.monotonic() - self._since
            self._pauses += 1

    def resume(self) -> None:
        """Let it go on."""
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0:
                self._since = time.monotonic()

    def kill(self) -> None:
        """There is nothing to end."""

    def active_s(self) -> float:
        """Seconds since the start in which nothing was measured."""
        with self._lock:
            return self._passed_s + (0.0 if self._pauses else time.monotonic() - self._since)


class Episode:
    """One attempt at one task. Thread-safe: calls wait for each other."""

    def __init__(self, service: EvaluationService, judged: Judged, limits: Limits, attempt: int = 1) -> None:
        self.attempt = attempt
        self._service, self._judged, self._limits = service, judged, limits
        self._one_at_a_time = threading.Lock()
        self._clock = StopWatch()
        self._presence = ExitStack()
        self._presence.enter_context(service.attend(self._clock))
        self._used = 0
        self._over = ""

    def evaluate(self, kernel: bytes, profile: bool = False) -> Step:
        """Evaluate a kernel on the seen cases. Raises `EpisodeOver` or `NoVerdict`."""
        with self._one_at_a_time:
            over = self._over or self._limit()
            if over:
                raise EpisodeOver(over)
            answer = self._service.evaluate(kernel, profile)
            if answer.evaluated is None:
                raise NoVerdict(answer.text.strip())
            self._used += 1
            earned = reward(answer.evaluated.status, answer.evaluated.speedup)
            left = self._limits.evaluations - self._used
            return Step(answer.text, msgspec.Raw(answer.content), earned, bool(self._limit()), self._used, left)

    def finish(self, kernel: bytes | None = None) -> Final:
        """Judge this kernel, else the best one so far, and end the episode. Raises `EpisodeOver` or `NoVerdict`."""
        with self._one_at_a_time:
            if self._over:
                raise EpisodeOver(self._over)
            try:
                chosen = kernel if kernel is not None else self._service.choose(None)[0]
                final = nothing_submitted() if chosen is None else final_of(self._judged(chosen))
            except InfrastructureError as problem:
                raise NoVerdict(f"no verdict, and the episode goes on: {problem}") from None
            self._end("the episode is finished")
            return structs.replace(final, attempt=self.attempt)

    def cancel(self) -> None:
        """End it without a verdict, if it has not ended."""
        with self._one_at_a_time:
            self._end("the episode was cancelled")

    def _end(self, why: str) -> None:
        self._over = self._over or why
        with suppress(InfrastructureError):  # everything was given up
            self._presence.close()

    def _limit(self) -> str:
        """Which limit is reached, if one is."""
        if self._used >= self._limits.evaluations:
            return f"all {self._limits.evaluations} evaluations are used up: only /finish is left"
        if self._clock.active_s() >= self._limits.wall_clock_s:
            return f"the {self._limits.wall_clock_s / 60:g} minutes are over: only /finish is left"
        return ""


class Episodes:
    """Attempts at one task, one after the other; the first has begun. `finals`: what those that finished came to."""

    def __init__(self, task: Task, judge_pool: JudgePool, options: Options, limits: Limits, attempts: int = 1) -> None:
        self._task, self._judge_pool, self._options, self._limits = task, judge_pool, options, limits
        self._attempts = attempts
        self._lock = threading.Lock()
        self._view = task_view(task, judge_pool.environment, limits)
        self.finals: list[Final] = []
        self._current = self._begin(1)

    def describe(self) -> TaskView:
        """The task, which stays the same."""
        return structs.replace(self._view, attempt=self._current.attempt, attempts=self._attempts)

    def evaluate(self, kernel: bytes, profile: bool = False) -> Step:
        """Evaluate in the current episode."""
        return self._current.evaluate(kernel, profile)

    def finish(self, kernel: bytes | None = None) -> Final:
        """Finish the current episode."""
        final = self._current.finish(kernel)
        self.finals.append(final)
        return final

    def reset(self) -> TaskView:
        """Begin the next attempt; the current one, if it is not finished, is cancelled. Raises `EpisodeOver`."""
        with self._lock:
            attempt = self._current.attempt + 1
            if attempt > self._attempts:
                raise EpisodeOver(f"all attempts are used up ({self._attempts}): start another `arena serve`")
            self._current.cancel()
            self._current = self._begin(attempt)
        return self.describe()

    def close(self) -> None:
        """End whatever is going on, also a measurement."""
        self._judge_pool.cancel()
        self._current.cancel()

    def _begin(self, attempt: int) -> Episode:
        service = TrialService(self._task, self._options, self._judge_pool, self._limits)
        return Episode(service, self._judge, self._limits, attempt)

    def _judge(self, kernel: bytes) -> Evaluation:
        with scratch("episode") as place:
            file = Path(place) / self._task.task_type.kernel_file
            file.write_bytes(kernel)
            return self._judge_pool.evaluate(
                self._task, file, structs.replace(self._options, heldout=True, profile=False)
            )
