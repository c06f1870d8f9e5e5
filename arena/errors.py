"""Exceptions of the harness. A failing candidate is a value (`arena.results.Status`), never one of these."""

from __future__ import annotations

import traceback
from pathlib import Path

from arena.package import PACKAGE

_INSTALLED = f"{PACKAGE.parent}/"


class ArenaError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = 3


class UsageError(ArenaError):
    """The user asked for something that cannot be: an unknown task, a bad option, a malformed configuration."""

    exit_code = 2


class FileError(UsageError):
    """A file says something wrong. The message names file, line and key, and what was expected instead."""

    def __init__(self, path: Path | str, problem: str, *, line: int | None = None, key: str | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.key = key
        self.problem = problem
        where = f"{path}:{line}" if line is not None else str(path)
        named = f" `{key}`:" if key else ""
        super().__init__(f"{where}:{named} {problem}")


class NotServed(ArenaError):
    """The server of `arena serve` answered with an error. `retry_after_s`: when to try again, where it is busy."""

    def __init__(self, message: str, status: int, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class InfrastructureError(ArenaError):
    """The harness, the machine or the device failed: no verdict about the candidate can be given."""


class MachineError(InfrastructureError):
    """The machine is set up so that nothing can run, such as a cache that cannot be written: no retry helps."""


class DeviceMemoryFull(InfrastructureError):
    """The judge's own tensors found no room on the device, which the candidate and its baseline share with it."""


class JudgeUnavailable(InfrastructureError):
    """No judge can be started, or none is wanted any more: no candidate has anything to do with it."""


class JudgeLost(InfrastructureError):
    """A judge on another machine is gone or unfit: what it was asked may be asked of another judge."""


class RecordError(InfrastructureError):
    """A record on disk cannot be read, or records that must not be mixed were."""


class BrokenRecord(RecordError):
    """A record is no JSON at all: what a power cut or a full disk leaves of a file."""


class StorageError(InfrastructureError):
    """The run folder cannot be written: going on would do work that nobody could keep."""


def what_was_raised() -> str:
    """The traceback being handled, with our files named from the package on: records are published with reports."""
    return traceback.format_exc().replace(_INSTALLED, "")
