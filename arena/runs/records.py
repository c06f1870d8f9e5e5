"""Run folders on disk: one head, one atomic, versioned record per trial.

runs/<run>/run.json                                   what was asked for
runs/<run>/run.lock                                   held, and named, by the process that writes here
runs/<run>/submissions/<agent>/<task>/<attempt>/      what was handed in
runs/<run>/trials/<agent>/<task with dots>.<attempt>.json   one trial each
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from arena.errors import BrokenRecord, RecordError, StorageError, UsageError
from arena.results.bounds import spelled
from arena.results.record import SCHEMA_VERSION, RunInfo, Trial
from arena.task.definition import TaskType

T = TypeVar("T")
HEAD = "run.json"
LOCK = "run.lock"
BROKEN = ".broken"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


@dataclass(frozen=True)
class RunRecords:
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


def submission_folder(run: Path, agent: str, task: str, attempt: int) -> Path:
    """Return the folder of what an agent handed in for one trial."""
    return run / "submissions" / agent / task / str(attempt)


def write_head(run: Path, info: RunInfo) -> None:
    """Write the head of a run folder; raises `RecordError` where `read_head` would refuse it."""
    try:
        msgspec.json.decode(msgspec.json.encode(info), type=RunInfo)
    except msgspec.ValidationError as problem:
        raise RecordError(f"{run / HEAD}: {spelled(problem)}; rename what this names") from problem
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


def read_run(run: Path) -> RunRecords:
    """Read a run folder, which anybody may have written; a record that no one planned, or of another run, is an error.

    `arena.runs.submission.read_folder` also checks its files.
    """
    info, read = read_head(run), [(path, read_trial(path)) for path in _trial_files(run)]
    info = _as_recorded(info, [trial for _, trial in read]) if info.open_ended else info
    planned = set(info.planned)
    trials = []
    for path, trial in read:
        if trial.run != info.run or trial.key not in planned:
            raise RecordError(f"{path}: record of {trial.key} in run {trial.run!r} does not belong to {info.run!r}")
        if path != trial_path(run, *trial.key):
            raise RecordError(f"{path}: a record under another trial's name, of {trial.key}; {WHOLE}")
        if not trial.environment.comparable_with(info.environment_of(trial.task)):
            raise RecordError(f"{path}: measured on {trial.environment.device.name}, the run on another device")
        if trial.evaluation is not None and trial.evaluation.effort is not info.effort:
            raise RecordError(f"{path}: effort {trial.evaluation.effort}, but the run's is {info.effort}")
        _require_consistent(path, trial)
        trials.append(trial)
    order = {key: place for place, key in enumerate(info.planned)}
    return RunRecords(run, info, tuple(sorted(trials, key=lambda trial: order[trial.key])))


def _require_consistent(path: Path, trial: Trial) -> None:
    """Raise `RecordError` where parts of a record contradict each other, or a case has two results."""
    if trial.task_type != trial.task.split("/")[0] or trial.task_type not in TaskType.__members__.values():
        raise RecordError(f"{path}: task_type: {trial.task_type!r} is no task type of {trial.task!r}; {WHOLE}")
    evaluation = trial.evaluation
    if evaluation is None:
        return
    for name in ("task", "task_type", "task_hash"):
        one, two = getattr(trial, name), getattr(evaluation, name)
        if one != two:
            raise RecordError(f"{path}: evaluation.{name}: {two!r}, but the trial's is {one!r}; {WHOLE}")
    if not evaluation.environment.comparable_with(trial.environment):
        raise RecordError(f"{path}: evaluation.environment: another device than the trial's; {WHOLE}")
    names = Counter(case.case for case in evaluation.cases)
    if twice := [name for name, count in names.items() if count > 1]:
        raise RecordError(f"{path}: evaluation.cases: two results of {twice[0]!r}; {WHOLE}")


def _as_recorded(info: RunInfo, trials: Sequence[Trial]) -> RunInfo:
    """Return the head of an open-ended run as if what is recorded had been planned."""
    return replace(
        info,
        agents=tuple(sorted({trial.agent for trial in trials})),
        tasks=tuple(sorted({trial.task for trial in trials})),
        attempts=max((trial.attempt for trial in trials), default=0),
        selected=tuple(sorted((trial.key for trial in trials), key=lambda key: (key[2], *key))),
    )


def by_device(run: RunRecords) -> tuple[RunRecords, ...]:
    """Return a run on several devices as one run for each, of its tasks; any other run as it is."""
    parts = []
    for device in run.info.devices:
        info = replace(
            run.info,
            environment=device.environment,
            tasks=device.tasks,
            selected=tuple(key for key in run.info.planned if key[1] in device.tasks),
            devices=(),
        )
        parts.append(RunRecords(run.path, info, tuple(trial for trial in run.trials if trial.task in device.tasks)))
    return tuple(parts) or (run,)


def _trial_files(run: Path) -> Iterator[Path]:
    yield from sorted((run / "trials").glob("*/*.json"))


def write(path: Path, value: object) -> None:
    """Write any record as JSON, atomically and durably."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, atomically and durably: after a power cut there is the whole of it or what was there before.

    Raises `StorageError` where it cannot be written, and then leaves nothing of it.
    """
    staged: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        staged = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
        staged = None
        _sync_folder(path.parent)
    except OSError as problem:
        raise StorageError(f"{path}: cannot be written ({problem.strerror or problem}); {_ADVICE}") from problem
    finally:
        if staged is not None:
            staged.unlink(missing_ok=True)


WHOLE = "hand in the folder as `arena run` wrote it"
_ADVICE = "make room, then the same command goes on where the run stopped"


def storage_error(problem: OSError) -> StorageError | None:
    """What to raise for an error of the operating system that says a disk is full or broken; None for any other."""
    if problem.errno not in _NO_ROOM:
        return None
    return StorageError(f"{problem.filename or 'the disk'}: {problem.strerror}; {_ADVICE}")


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file survive a power cut, not only its contents."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Keep other processes from writing this run folder; raises `UsageError` that names the one which does.

    The kernel frees the lock of a process that has died, however it died.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        handle = os.open(run / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise StorageError(f"{run}: cannot be written ({problem.strerror}); {_ADVICE}") from problem
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise UsageError(
                f"{run} is being written by process {holder}; wait for it, end it, "
                "or give this run another name (`--name`, in Python `name=`)"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(handle)


def put_aside_broken(run: Path) -> list[Path]:
    """Rename what a power cut left half written, and return the new names; for the holder of the lock.

    Remains of writes that were never finished are removed: they were never records.
    """
    for remains in (*run.glob(f".{HEAD}.*"), *(run / "trials").glob("*/.*.json.*")):
        remains.unlink(missing_ok=True)
    found = [path for path in (run / HEAD, *_trial_files(run)) if path.is_file() and _is_broken(path)]
    return [put_aside(path) for path in found]


def put_aside(path: Path) -> Path:
    """Give a broken file a name that nothing reads; an earlier one of that name is kept too."""
    aside, number = path.with_name(path.name + BROKEN), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}{BROKEN}{number}")
    return path.rename(aside)


def _is_broken(path: Path) -> bool:
    try:
        msgspec.json.decode(path.read_bytes())
    except ValueError:
        return True
    return False


def read(path: Path, kind: type[T]) -> T:
    """Read a record of one kind; raises `RecordError` where it is not one of this version.

    One that is no JSON at all is a `BrokenRecord`: the next `arena run` puts it aside and runs the trial again.
    """
    try:
        data = path.read_bytes()
        version = _version(data)
    except RecursionError as problem:
        raise RecordError(f"{path}: unreadable record ({problem}); {WHOLE}") from problem
    except ValueError as problem:  # also where the bytes are no UTF-8
        again = "the same `arena run` puts it aside and runs the trial again"
        raise BrokenRecord(f"{path}: unreadable record ({problem}); {again}") from problem
    except OSError as problem:
        raise RecordError(f"{path}: unreadable record ({problem})") from problem
    if version != SCHEMA_VERSION:
        raise RecordError(f"{path}: schema version {version}, this arena reads {SCHEMA_VERSION}")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise RecordError(
            f"{path}: unreadable record ({spelled(problem)}); {WHOLE}, or delete it and start again"
        ) from problem


class _Versioned(msgspec.Struct):
    schema_version: Any = None


def _version(data: bytes) -> object:
    """The version of a record, read without the rest of it; raises `ValueError` where the bytes are no JSON."""
    try:
        return msgspec.json.decode(data, type=_Versioned).schema_version
    except msgspec.ValidationError:
        return None
