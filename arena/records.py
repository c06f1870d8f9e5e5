"""Run folders on disk: one head, one atomic, versioned record per trial.

runs/<run>/run.json                                   what was asked for
runs/<run>/trials/<agent>/<task with dots>.<attempt>.json   one trial each
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from arena.errors import RecordError
from arena.model.record import SCHEMA_VERSION, RunInfo, Trial

T = TypeVar("T")
HEAD = "run.json"


@dataclass(frozen=True)
class Run:
    """A run read back from disk: its head and the trials recorded so far."""

    path: Path
    info: RunInfo
    trials: tuple[Trial, ...]

    @property
    def missing(self) -> int:
        """How many planned trials have no record yet."""
        return len(self.info.planned) - len(self.trials)


def trial_path(run: Path, agent: str, task: str, attempt: int) -> Path:
    """Where the record of one trial lives."""
    return run / "trials" / agent / f"{task.replace('/', '.')}.{attempt}.json"


def write_head(run: Path, info: RunInfo) -> None:
    """Write the head of a run folder."""
    write(run / HEAD, info)


def write_trial(run: Path, trial: Trial) -> Path:
    """Write one trial's record, atomically: after a power cut there is the whole file or none."""
    path = trial_path(run, *trial.key)
    write(path, trial)
    return path


def read_head(run: Path) -> RunInfo:
    """Read the head of a run folder; raises `RecordError` where there is none or it cannot be read."""
    if not (run / HEAD).is_file():
        raise RecordError(f"{run}: not a run folder (no {HEAD}); `arena run` makes one")
    return read(run / HEAD, RunInfo)


def read_trial(path: Path) -> Trial:
    """Read one trial's record."""
    return read(path, Trial)


def read_run(run: Path) -> Run:
    """Read a run folder; a record that no one planned, or of another run, is an error, not a surprise."""
    info = read_head(run)
    planned = set(info.planned)
    trials = []
    for path in _trial_files(run):
        trial = read_trial(path)
        if trial.run != info.run or trial.key not in planned:
            raise RecordError(f"{path}: record of {trial.key} in run {trial.run!r} does not belong to {info.run!r}")
        if not trial.environment.comparable_with(info.environment):
            raise RecordError(f"{path}: measured on {trial.environment.device.name}, the run on another device")
        trials.append(trial)
    order = {key: place for place, key in enumerate(info.planned)}
    return Run(run, info, tuple(sorted(trials, key=lambda trial: order[trial.key])))


def _trial_files(run: Path) -> Iterator[Path]:
    yield from sorted((run / "trials").glob("*/*.json"))


def write(path: Path, value: object) -> None:
    """Write any record as JSON, atomically and durably."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, atomically and durably: after a power cut there is the whole of it or what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path, kind: type[T]) -> T:
    """Read a record of one kind; raises `RecordError` where it is not one of this version."""
    try:
        data = path.read_bytes()
        version = _version(msgspec.json.decode(data))
        if version != SCHEMA_VERSION:
            raise RecordError(f"{path}: schema version {version}, this arena reads {SCHEMA_VERSION}")
        return msgspec.json.decode(data, type=kind)
    except (OSError, msgspec.MsgspecError) as problem:
        raise RecordError(f"{path}: unreadable record ({problem}); delete it and start again") from problem


def _version(content: Any) -> object:
    return content.get("schema_version") if isinstance(content, dict) else None
