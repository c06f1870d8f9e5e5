"""Agents that need no model: they calibrate the harness, show the ceiling, and grade what others produced."""

from __future__ import annotations

import shutil
from pathlib import Path

from arena.agents.base import Agent, EvaluationService, Submission, Workspace
from arena.errors import UsageError
from arena.task.definition import Task


class _Copies(Agent):
    """What agents share that only copy a file."""

    absence = ""

    def program(self) -> str:
        """Nothing but the files that it hands in, whose hashes are in its records."""
        return ""

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Copy the file to where the candidate is expected; where there is none, nothing is handed in."""
        file = self.candidate(workspace.task, workspace.attempt)
        if file is None:
            return Submission(None, self._absence(workspace.task))
        shutil.copyfile(file, workspace.candidate)
        return Submission(workspace.candidate)

    def _absence(self, task: Task) -> str:
        return self.absence


class Noop(_Copies):
    """Hands in the baseline: any speedup it shows is the harness's own error."""

    calibrates = True

    def __init__(self, name: str) -> None:
        self.name = name

    def candidate(self, task: Task, attempt: int) -> Path | None:
        """Return the baseline kernel; a PyTorch function is none, and a translation is not made up."""
        return task.baseline_kernel

    def _absence(self, task: Task) -> str:
        return f"a {task.task_type} task has no baseline kernel to hand in"


class Expert(_Copies):
    """Hands in the task's expert file, where it has one."""

    calibrates = True
    absence = "the task has no expert"

    def __init__(self, name: str) -> None:
        self.name = name

    def candidate(self, task: Task, attempt: int) -> Path | None:
        """Return the expert."""
        return task.expert


class Replay(_Copies):
    """Hands in files from a folder laid out as `<folder>/<task id>/[<attempt>/]kernel.{py,hip}`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        if not folder.is_dir():
            raise UsageError(f"agent {name}: {folder} is not a folder of candidates")

    def candidate(self, task: Task, attempt: int) -> Path | None:
        """Return the candidate of this attempt, else the one for all attempts."""
        base, name = self._folder / task.id, task.task_type.kernel_file
        places = (base / str(attempt) / name, base / name)
        return next((place for place in places if place.is_file()), None)

    def _absence(self, task: Task) -> str:
        return f"{self._folder.name}/{task.id} holds no {task.task_type.kernel_file}"
