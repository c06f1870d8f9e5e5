"""A verdict also where the judge itself fails: a fresh judge tries again, then the baseline runs as a control.

What ends a judge may be the harness's fault or the candidate's doing, and nothing in it tells which. A candidate with
which two judges fail, while the next one evaluates the baseline, has failed. Used by `client.py`, which everything that
evaluates goes through.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from msgspec import structs

from arena.errors import DeviceMemoryFull, InfrastructureError, JudgeUnavailable, MachineError
from arena.judge.compile.refusals import refusal
from arena.judge.process.messages import Progress
from arena.judge.selection import bounded, select_cases, with_made_up_case
from arena.processes.error_line import first_error_line
from arena.results.environment import Environment
from arena.results.messages import message
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status, Verdict
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.options import Options

_LINE_CHARACTERS = 300
_PASSED = (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE)
"""a control is there to show that the harness works, not that it is quiet enough to time things"""


@dataclass(frozen=True)
class Request:
    """A request to evaluate one candidate."""

    task: Path
    candidate: Path
    options: Options
    heldout: Path | None = None
    compiled: Path | None = None
    """what a builder compiled of it"""


class Judging(Protocol):
    """A judge that is replaced by a fresh one after each failure."""

    @property
    def environment(self) -> Environment:
        """Return the environment that it measures in."""

    def evaluate_once(self, request: Request, on_progress: Callable[[Progress], None]) -> Evaluation:
        """Evaluate; raises `InfrastructureError` where the judge failed, `JudgeUnavailable` where none starts."""

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        """Check the baseline on the held-out cases: by case id `passed`, or what is wrong."""


def evaluated(judge: Judging, request: Request, on_progress: Callable[[Progress], None]) -> Evaluation:
    """Evaluate, at most twice.

    Raises:
        InfrastructureError: the harness fails with the baseline, too, or found no room on the device.
    """
    started = time.monotonic()
    problems: list[InfrastructureError] = []
    while len(problems) < 2:
        try:
            return judge.evaluate_once(request, on_progress)
        except (JudgeUnavailable, MachineError):
            raise
        except InfrastructureError as problem:
            problems.append(problem)
            said = first_error_line(str(problem), _LINE_CHARACTERS)
            logging.getLogger(__name__).warning("the judge failed with %s: %s", request.candidate, said)
    task = with_made_up_case(load_task(request.task, request.heldout), request.options)
    if isinstance(problems[-1], DeviceMemoryFull) or not _baseline_passes(judge, task, request):
        raise problems[-1]
    return _crashed(judge.environment, task, request, time.monotonic() - started)


def _baseline_passes(judge: Judging, task: Task, request: Request) -> bool:
    """Return whether a fresh judge can evaluate the baseline: the baseline kernel, or PyTorch running the reference."""
    try:
        if task.baseline_kernel is None:
            found = judge.check_baseline(request.task, request.heldout, request.options)
            return all(status == Status.PASSED for status in found.values())
        options = structs.replace(request.options, profile=False, dump=None)
        control = judge.evaluate_once(Request(request.task, task.baseline_kernel, options, request.heldout), _ignore)
        return control.status in _PASSED
    except InfrastructureError:
        return False


def _crashed(environment: Environment, task: Task, request: Request, seconds: float) -> Evaluation:
    """The verdict on a candidate that judges fail with. No gate counts as passed: nobody lived to say so."""
    options = bounded(request.options, environment.device)
    seen = select_cases(task, task.seen, options)
    heldout = select_cases(task, task.heldout, options) if options.heldout else ()
    verdict = Verdict(Stage.COMPILE, Status.CRASH, message("judge_failed_twice"), seconds)
    refused = refusal(task, request.candidate, (*seen, *heldout), environment, verdict)
    return replace(refused, made_up=options.like or "")


def _ignore(progress: Progress) -> None:
    """A control is nobody's progress."""
