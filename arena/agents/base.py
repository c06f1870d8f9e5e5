"""What an agent is: whatever turns a workspace into a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from arena.model.task import Task


@dataclass(frozen=True)
class Workspace:
    """The folder in which an agent works on one task, and the file it is expected to leave there."""

    folder: Path
    task: Task
    attempt: int

    @property
    def candidate(self) -> Path:
        """The one file that is taken from the workspace."""
        return self.folder / self.task.task_type.kernel_file


@dataclass(frozen=True)
class Submission:
    """What an agent handed in: a file, or nothing and the reason."""

    candidate: Path | None
    detail: str = ""


class Agent(Protocol):
    """One agent. `name` is what records and reports call it."""

    name: str

    def work(self, workspace: Workspace) -> Submission:
        """Work on a task; what the agent leaves in the workspace is what is judged."""
