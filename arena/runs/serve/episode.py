"""One episode: evaluate kernels on one task within a budget, then finish. docs/evaluate/serve.md."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import msgspec

from arena.errors import InfrastructureError
from arena.results.record import Evaluation
from arena.results.reward import bounded_reward, reward
from arena.results.session import Evaluated, Limits
from arena.runs.serve.views import Final, Step, final_of, nothing_submitted
from arena.runs.service.judge_queue import Owner
from arena.runs.service.trial import TrialService

Judged = Callable[[bytes, Owner], Evaluation]
"""The final verdict on a kernel: every gate, held-out cases included."""
Place = Callable[[], AbstractContextManager[None]]
"""what an evaluation holds while it is judged or waits for a judge"""
_LOOKS_EVERY_S = 0.5


class EpisodeOver(Exception):
    """The episode takes no more of this. The message says why, and what can still be done."""


class NoVerdict(Exception):
    """The harness failed, which says nothing about the kernel; the call was not counted and may be repeated."""


class EpisodeClock:
    """Seconds since an episode's first request, without those in which the judge had its kernel."""

    def __init__(self, passed_s: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._passed_s = passed_s
        self._since: float | None = None

    def active_s(self) -> float:
        """Seconds so far."""
        with self._lock:
            return self._passed_s + (0.0 if self._since is None else time.monotonic() - self._since)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stand still while the judge works; the first call starts the clock when it ends."""
        with self._lock:
            if self._since is not None:
                self._passed_s += time.monotonic() - self._since
            self._since = None
        try:
            yield
        finally:
            with self._lock:
                self._since = time.monotonic()


class Episode:
    """One attempt at one task. Thread-safe: calls wait for each other.

    Args:
        service: evaluates kernels, and remembers the best.
        judged: gives the final verdict.
        limits: evaluations and minutes; more is refused.
        clock: of this episode, which `service` reads too.
    """

    def __init__(self, service: TrialService, judged: Judged, limits: Limits, clock: EpisodeClock) -> None:
        self._service, self._judged, self._limits, self.clock = service, judged, limits, clock
        self._one_at_a_time = threading.Lock()
        self._over = ""
        self.evaluations: list[Evaluated] = []

    def restore(self, kernel: bytes, evaluated: Evaluated) -> None:
        """Take an evaluation from before a restart."""
        self.evaluations.append(evaluated)
        self._service.restore(kernel, evaluated)

    def evaluate(
        self, kernel: bytes, profile: bool, owner: Owner, place: Place, keep: Callable[[Evaluated], None]
    ) -> Step:
        """Evaluate a kernel on the seen cases; `keep` writes it down.

        Raises:
            EpisodeOver: it takes no more evaluations.
            NoVerdict: the harness failed, or whoever asked is gone.
        """
        with self._turn(owner):
            over = self._over or self._limit()
            if over:
                raise EpisodeOver(over)
            with place(), self.clock.stopped():
                answer = self._service.evaluate(kernel, profile, owner)
                if answer.evaluated is None:
                    raise NoVerdict(answer.text.strip())
                self.evaluations.append(answer.evaluated)
                keep(answer.evaluated)
            status, speedup = answer.evaluated.status, answer.evaluated.speedup
            used = len(self.evaluations)
            left = self._limits.evaluations - used
            return Step(
                text=answer.text,
                result=msgspec.Raw(answer.content),
                reward=reward(status, speedup),
                bounded_reward=bounded_reward(speedup),
                done=bool(self._limit()),
                evaluation=used,
                left=left,
            )

    def finish(
        self,
        kernel: bytes | None,
        owner: Owner,
        place: Place,
        keep: Callable[[bytes | None, Evaluation | None], None],
    ) -> Final:
        """Judge this kernel, else the best one so far, and end the episode. Raises as `evaluate` does."""
        with self._turn(owner):
            if self._over:
                raise EpisodeOver(self._over)
            with place(), self.clock.stopped():
                try:
                    chosen = kernel if kernel is not None else self._service.choose(None)[0]
                    evaluation = None if chosen is None else self._judged(chosen, owner)
                except InfrastructureError as problem:
                    raise NoVerdict(f"no verdict, and the episode goes on: {problem}") from None
            keep(chosen, evaluation)
            self.end("the episode is finished")
            return nothing_submitted() if evaluation is None else final_of(evaluation)

    def end(self, why: str) -> None:
        """Take no more calls."""
        self._over = why

    @property
    def finished(self) -> bool:
        """Return whether it takes no more calls."""
        return bool(self._over)

    @contextmanager
    def _turn(self, owner: Owner) -> Iterator[None]:
        """Wait until no other call of this episode is judged. Raises `NoVerdict` where whoever asked is gone."""
        while not self._one_at_a_time.acquire(timeout=_LOOKS_EVERY_S):
            if owner.is_gone():
                raise NoVerdict("the request was given up while it waited for another one of its episode")
        try:
            yield
        finally:
            self._one_at_a_time.release()

    def _limit(self) -> str:
        """Return the limit that is reached, if one is."""
        if len(self.evaluations) >= self._limits.evaluations:
            return f"all {self._limits.evaluations} evaluations are used up: only /finish is left"
        if self.clock.active_s() >= self._limits.wall_clock_s:
            return f"the {self._limits.wall_clock_s / 60:g} minutes are over: only /finish is left"
        return ""
