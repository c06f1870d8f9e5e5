"""Agents that need no model: they calibrate the harness, show the ceiling, and grade what others produced."""

from __future__ import annotations

import shutil
from pathlib import Path

from arena.agents.base import EvaluationService, Submission, Workspace
from arena.errors import UsageError


class _Copies:
    """What agents share that only copy a file."""

    limits = None

    def lacks(self) -> str:
        """Nothing: it needs no program."""
        return ""


class Noop(_Copies):
    """Hands in the starting kernel: any speedup it shows is the harness's own error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Copy the starting kernel; torch2hip has none, and a translation is not made up."""
        absence = "a torch2hip task has no starting kernel to hand in"
        return _hand_in(workspace, workspace.task.starting_kernel, absence)


class Expert(_Copies):
    """Hands in the task's expert file, where it has one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Copy the expert."""
        return _hand_in(workspace, workspace.task.expert, "the task has no expert")


class Replay(_Copies):
    """Hands in files from a folder laid out as `<folder>/<task id>/[<attempt>/]kernel.{py,hip}`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        if not folder.is_dir():
            raise UsageError(f"agent {name}: {folder} is not a folder of candidates")

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Copy the candidate of this attempt, else the one for all attempts."""
        base, name = self._folder / workspace.task.id, workspace.candidate.name
        places = (base / str(workspace.attempt) / name, base / name)
        file = next((place for place in places if place.is_file()), None)
        return _hand_in(workspace, file, f"{self._folder.name}/{workspace.task.id} holds no {name}")


def _hand_in(workspace: Workspace, file: Path | None, absence: str) -> Submission:
    """Put `file` where the candidate is expected; where there is none, nothing is handed in, for the reason given."""
    if file is None:
        return Submission(None, absence)
    shutil.copyfile(file, workspace.candidate)
    return Submission(workspace.candidate)
