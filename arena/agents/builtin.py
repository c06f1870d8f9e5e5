"""Agents that need no model: they calibrate the harness, show the ceiling, and grade what others produced."""

from __future__ import annotations

import shutil
from pathlib import Path

from arena.agents.base import Submission, Workspace
from arena.errors import UsageError


class Noop:
    """Hands in the starting kernel: any speedup it shows is the harness's own error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def work(self, workspace: Workspace) -> Submission:
        """Copy the starting kernel; torch2hip has none, and a translation is not made up."""
        start = workspace.task.starting_kernel
        if start is None:
            return Submission(None, "a torch2hip task has no starting kernel to hand in")
        shutil.copyfile(start, workspace.candidate)
        return Submission(workspace.candidate)


class Expert:
    """Hands in the task's expert file, where it has one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def work(self, workspace: Workspace) -> Submission:
        """Copy the expert."""
        expert = workspace.task.expert
        if expert is None:
            return Submission(None, "the task has no expert")
        shutil.copyfile(expert, workspace.candidate)
        return Submission(workspace.candidate)


class Replay:
    """Hands in files from a folder laid out as `<folder>/<task id>/[<attempt>/]kernel.{py,hip}`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        if not folder.is_dir():
            raise UsageError(f"agent {name}: {folder} is not a folder of candidates")

    def work(self, workspace: Workspace) -> Submission:
        """Copy the candidate of this attempt, else the one for all attempts."""
        base = self._folder / workspace.task.id
        for place in (base / str(workspace.attempt), base):
            file = place / workspace.candidate.name
            if file.is_file():
                shutil.copyfile(file, workspace.candidate)
                return Submission(workspace.candidate)
        return Submission(None, f"{self._folder.name}/{workspace.task.id} holds no {workspace.candidate.name}")
