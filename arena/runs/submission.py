"""A run folder that somebody else wrote: read only after its files, names and sizes have been checked."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from arena.errors import RecordError
from arena.results.record import Trial
from arena.runs.records import HEAD, RunRecords, read_run, trial_path
from arena.task.definition import TaskType

SUBMISSIONS = "submissions"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KIND = re.compile(r"[a-z_]{0,40}")
_FEW = 3
_TASK_PARTS = 3
_MOST_FILES = 200_000
_MOST_BYTES = {"run.json": 16 << 20, "trials": 64 << 20, SUBMISSIONS: 4 << 20}
"""of one file, by the first part of its path; of any other file `_MOST_OTHER_BYTES`"""
_MOST_OTHER_BYTES = 128 << 20
_ADVICE = "hand in the folder as `arena run` wrote it"


def read_submission(run: Path) -> RunRecords:
    """Read a run folder that somebody else wrote.

    Raises:
        RecordError: it holds a link, something that is neither file nor folder, a file that is too large, a name that
            is no name, or a record under another trial's file name; or it is no run folder, or of several devices.
    """
    files = check_files(run)
    records = read_run(run)
    info = records.info
    if info.devices:
        raise RecordError(f"{run}: a run on several devices is not taken; measure each device in a run of its own")
    for name in (info.run, *info.agents, *(key[0] for key in info.planned)):
        _require_name(run, name)
    for task in (*info.tasks, *(key[1] for key in info.planned)):
        parts = task.split("/")
        if len(parts) != _TASK_PARTS:
            raise RecordError(f"{run}: {task!r} is no task id, such as triton2triton/moe/fused_moe; {_ADVICE}")
        for part in parts:
            _require_name(run, part)
    for trial in records.trials:
        _require_vocabulary(run, trial)
    expected = {trial_path(run, *trial.key).relative_to(run).as_posix() for trial in records.trials}
    found = {path for path in files if path.startswith("trials/") and path.endswith(".json")}
    if found != expected:
        strange = sorted(found ^ expected)[:_FEW]
        raise RecordError(f"{run}: records under names of other trials: {', '.join(map(repr, strange))}; {_ADVICE}")
    return records


def records_hash(run: Path) -> str:
    """SHA-256 over names and bytes of a run's head, records and kernels: what a verification is about."""
    digest = hashlib.sha256()
    for path in sorted(check_files(run)):
        if path == HEAD or path.startswith(("trials/", f"{SUBMISSIONS}/")):
            data = (run / path).read_bytes()
            digest.update(f"{path}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()


def check_files(run: Path) -> list[str]:
    """Return the paths of all files below a run folder, relative to it.

    Raises:
        RecordError: there is a link, a special file, a file that is too large, or too many files.
    """
    if run.is_symlink() or not run.is_dir():
        raise RecordError(f"{run}: not a folder; {_ADVICE}")
    found = []
    for path, status in _walk(run):
        name = path.relative_to(run).as_posix()
        if not stat.S_ISREG(status.st_mode):
            raise RecordError(f"{run}: {name!r} is a link or no plain file; {_ADVICE}")
        most = _MOST_BYTES.get(name.split("/", 1)[0], _MOST_OTHER_BYTES)
        if status.st_size > most:
            raise RecordError(f"{run}: {name!r} has {status.st_size} bytes, more than {most}; {_ADVICE}")
        found.append(name)
        if len(found) > _MOST_FILES:
            raise RecordError(f"{run}: more than {_MOST_FILES} files; {_ADVICE}")
    return found


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every entry below a folder that is no folder, links not followed."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))
                    else:
                        yield Path(entry.path), entry.stat(follow_symlinks=False)
        except OSError as problem:
            raise RecordError(f"{folder}: cannot be read ({problem.strerror}); {_ADVICE}") from problem


def _require_vocabulary(run: Path, trial: Trial) -> None:
    """Refuse words of a record that reports take for ours: its task type, and the kinds of its cases."""
    if trial.task_type != trial.task.split("/")[0] or trial.task_type not in TaskType.__members__.values():
        raise RecordError(f"{run}: {trial.task_type!r} is no task type of {trial.task!r}; {_ADVICE}")
    for case in () if trial.evaluation is None else trial.evaluation.cases:
        if not _KIND.fullmatch(case.kind):
            raise RecordError(f"{run}: {case.kind!r} is no kind of case; {_ADVICE}")


def _require_name(run: Path, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RecordError(f"{run}: {name!r} is no name (letters, digits, `.`, `_` and `-`, 100 at most); {_ADVICE}")
