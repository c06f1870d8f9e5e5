"""Trials as points of a tracker, beside the display."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from arena.errors import UsageError
from arena.integrations.tracking import TrackedRun, point, tracker_called
from arena.judge.process.messages import Progress
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs.runner import TrialKey, Watcher
from tests.reports import builders as b


class Shown(Watcher):
    """Remembers which events came."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def planned(self, total: int, recorded: int) -> None:
        self.events.append("planned")

    def started(self, trial: TrialKey) -> None:
        self.events.append("started")

    def progress(self, trial: TrialKey, progress: Progress) -> None:
        self.events.append("progress")

    def finished(self, trial: Trial) -> None:
        self.events.append("finished")

    def noted(self, text: str) -> None:
        self.events.append("noted")


class Kept:
    """A tracker that keeps its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def init(self, *, project: str, name: str, config: dict[str, Any]) -> None:
        print("welcome")  # noqa: T201
        self.calls.append((project, name, config))

    def log(self, metrics: dict[str, Any]) -> None:
        self.calls.append(metrics)

    def finish(self) -> None:
        print("goodbye")  # noqa: T201
        self.calls.append("finish")


def test_every_event_is_handed_on_and_finished_trials_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    shown, kept, trial = Shown(), Kept(), b.trial(cases=[b.case(speedup=2.0)])
    with TrackedRun(shown, kept, "monday", {"tasks": 1}) as watcher:
        watcher.planned(1, 0)
        watcher.started(trial.key)
        watcher.progress(trial.key, Progress("correctness", 1, 1))
        watcher.noted("so it is")
        watcher.finished(trial)
    assert shown.events == ["planned", "started", "progress", "noted", "finished"]
    assert kept.calls == [("unseen-arena", "monday", {"tasks": 1}), point(trial), "finish"]
    assert capsys.readouterr() == ("", "welcome\ngoodbye\n")


def test_what_a_point_has() -> None:
    passed = point(replace(b.trial(cases=[b.case(speedup=2.0)]), session=b.session(b.evaluated(1))))
    assert passed["alpha/speedup"] == pytest.approx(2.0) and passed["alpha/reward"] == pytest.approx(1.0)
    assert passed["alpha/bounded_reward"] == pytest.approx(0.475)
    assert (passed["alpha/tokens"], passed["alpha/evaluations"]) == (49_500, 1)
    lost = point(b.trial(status=Status.HARNESS_ERROR))
    assert (lost["alpha/solved"], lost["alpha/reward"], "alpha/speedup" in lost) == (0.0, -7.0, False)


def test_trackers_that_are_unknown_or_missing() -> None:
    with pytest.raises(UsageError, match="expected one of trackio, wandb"):
        tracker_called("mlflow")
    with pytest.raises(UsageError, match="pip install wandb"):
        tracker_called("wandb")
