"""Trials as points of an experiment tracker, as they finish. Trackers with init, log and finish all fit."""

from __future__ import annotations

import importlib
import sys
from contextlib import redirect_stdout
from types import TracebackType
from typing import Any, Protocol, Self

from arena.errors import UsageError
from arena.extras import EXTRAS, lacks_extra
from arena.judge.process.messages import Progress
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import Trial
from arena.results.reward import bounded_reward, reward
from arena.runs.runner import TrialKey, Watcher

TRACKERS = ("trackio", "wandb")
_PROJECT = "unseen-arena"


class Tracker(Protocol):
    """The functions of a tracker's module."""

    def init(self, *, project: str, name: str, config: dict[str, Any]) -> Any:
        """Begin a run."""

    def log(self, metrics: dict[str, Any]) -> None:
        """Add a point."""

    def finish(self) -> None:
        """End the run."""


def tracker_called(name: str) -> Tracker:
    """Return a tracker by name. Raises `UsageError` where it is unknown or not installed."""
    if name not in TRACKERS:
        raise UsageError(f"--track {name}: expected one of {', '.join(TRACKERS)}")
    try:
        found: Any = importlib.import_module(name)
    except ImportError as problem:
        if name in EXTRAS:
            raise lacks_extra(EXTRAS[name], problem) from None
        raise UsageError(f"{problem}; --track {name} needs `pip install {name}`") from None
    tracker: Tracker = found
    return tracker


class TrackedRun(Watcher):
    """Hands every event on to another watcher, and finished trials to a tracker; a context manager."""

    def __init__(self, shown: Watcher, tracker: Tracker, name: str, config: dict[str, Any]) -> None:
        self._shown, self._tracker, self._name, self._config = shown, tracker, name, config

    def __enter__(self) -> Self:
        with redirect_stdout(sys.stderr):  # trackers greet there, and stdout is for results
            self._tracker.init(project=_PROJECT, name=self._name, config=self._config)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with redirect_stdout(sys.stderr):
            self._tracker.finish()

    def planned(self, total: int, recorded: int) -> None:
        """Hand it on."""
        self._shown.planned(total, recorded)

    def started(self, trial: TrialKey) -> None:
        """Hand it on."""
        self._shown.started(trial)

    def progress(self, trial: TrialKey, progress: Progress) -> None:
        """Hand it on."""
        self._shown.progress(trial, progress)

    def noted(self, text: str) -> None:
        """Hand it on."""
        self._shown.noted(text)

    def finished(self, trial: Trial) -> None:
        """Hand it on, and log a point."""
        self._shown.finished(trial)
        self._tracker.log(point(trial))


def point(trial: Trial) -> dict[str, Any]:
    """Return the numbers of a trial, named after its agent; `speedup` only where it counts."""
    speedup = trial.evaluation.seen_speedup if trial.evaluation is not None else None
    outcome = outcome_of_trial(trial)
    overfit = outcome is Outcome.OVERFIT
    numbers: dict[str, Any] = {
        "solved": float(outcome.solves),
        "overfit": float(overfit),
        "reward": reward(trial.status, speedup, overfit=overfit),
        "bounded_reward": bounded_reward(speedup, overfit=overfit),
        "seconds": trial.seconds,
    }
    if speedup is not None:
        numbers["speedup"] = speedup
    if trial.session is not None:
        numbers |= {"tokens": trial.session.tokens.total, "cost_usd": trial.session.cost_usd}
        numbers["evaluations"] = len(trial.session.evaluations)
    named = {f"{trial.agent}/{name}": value for name, value in numbers.items()}
    return {"task": trial.task, "attempt": trial.attempt, **named}
