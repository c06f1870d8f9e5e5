"""The agent protocol, and what an agent gets and returns."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from arena.results.environment import Environment
from arena.results.session import Evaluated, Limits, Session
from arena.task.definition import Task


@dataclass(frozen=True)
class Feedback:
    """The judge's answer to one call of `./evaluate`: seen cases only.

    `text` is what a person reads; `content` is the same for machines, a JSON object.
    """

    text: str
    content: bytes
    evaluated: Evaluated | None
    """None where nothing was evaluated: the limit was reached, or the harness failed"""


class Pausable(Protocol):
    """An agent's processes, which stand still while the judge measures."""

    def pause(self) -> None:
        """Stop every process; returns when none of them runs any more."""

    def resume(self) -> None:
        """Let them go on."""

    def kill(self) -> None:
        """End them all, daemons too."""


class Attended(Pausable, Protocol):
    """Processes with a clock that stands still with them."""

    def active_s(self) -> float:
        """Seconds since the start in which they were not stopped."""


class Evaluates(Protocol):
    """What `./evaluate` needs of an evaluation service."""

    def evaluate(self, kernel: bytes, profile: bool = False) -> Feedback:
        """Evaluate a kernel on the seen cases; waits for the device. One call at a time, others wait."""


class EvaluationService(Evaluates, Protocol):
    """Where an agent hands in kernels while it works: the runner's side of `./evaluate`."""

    def attend(self, processes: Attended) -> AbstractContextManager[None]:
        """While this lasts, these processes are stopped whenever a judge measures.

        Raises `InfrastructureError` at its end where the run was given up meanwhile: what the agent did is not its own.
        """

    def choose(self, left: bytes | None) -> tuple[bytes | None, str]:
        """The kernel that counts, and why: what was left in the workspace, or the best one evaluated, if faster."""


@dataclass(frozen=True)
class Workspace:
    """The folder in which an agent works on one task, and the file it is expected to leave there.

    `transcript` is a folder outside of it, where the transcript goes; `environment` is where kernels are measured.
    """

    folder: Path
    task: Task
    attempt: int
    environment: Environment
    transcript: Path

    @property
    def candidate(self) -> Path:
        """The one file that is taken from the workspace."""
        return self.folder / self.task.task_type.kernel_file


@dataclass(frozen=True)
class Submission:
    """What an agent handed in: a file, or nothing and the reason; and what it did, where it is more than a copy."""

    candidate: Path | None
    detail: str = ""
    session: Session | None = None


@dataclass(frozen=True)
class AgentSpec:
    """An agent as a configuration asks for it. Paths are resolved against the configuration's own folder.

    `kind`: a built-in, the name of a definition, or a definition's file. What is left empty is the definition's.
    """

    name: str
    kind: str
    folder: Path | None = None
    model: str = ""
    command: tuple[str, ...] = ()
    show: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)


def digest_of(*parts: Path | str) -> str:
    """Return a digest of texts and of the contents of files, those that are missing left out."""
    digest = hashlib.sha256()
    for part in parts:
        try:
            data = part.read_bytes() if isinstance(part, Path) else part.encode()
        except (OSError, ValueError):  # no file: a word of a command line may be anything
            continue
        digest.update(f"{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


class Agent(Protocol):
    """An agent: turns a task into a candidate. Subclass it, and override `work`.

    A package offers an agent to `arena run` by an entry point of the group `unseen_arena.agents`: a callable that takes
    an `AgentSpec`, the agent's item of the run configuration, and returns the agent.

    Attributes:
        name: what records and reports call the agent.

    Examples:
        >>> import arena
        >>> class Copy(arena.Agent):
        ...     name = "copy"
        ...
        ...     def work(self, workspace, service):
        ...         return arena.Submission(workspace.task.baseline_kernel)
    """

    name: str
    calibrates: bool = False
    """whether it hands in files of the corpus, to calibrate the harness, and has no rank"""

    @property
    def limits(self) -> Limits | None:
        """What one trial may use up; None for an agent that only copies a file and needs no workspace."""
        return None

    def program(self) -> str:
        """Return a digest of what decides what the agent does; empty where it hands in files, which are hashed."""
        source = inspect.getsourcefile(type(self))
        return digest_of(Path(source)) if source else ""

    def lacks(self) -> str:
        """Return what keeps the agent from starting here, and what to do; an empty string where nothing does."""
        return ""

    def candidate(self, task: Task, attempt: int) -> Path | None:
        """Return the file that the agent will hand in, where that is known before it works; None elsewhere."""
        return None

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Work on one task.

        Args:
            workspace: the folder to work in, the task, and the number of the attempt.
            service: evaluates kernels on the seen cases meanwhile.

        Returns:
            The candidate's file, or None and the reason.
        """
        ...
