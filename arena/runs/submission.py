"""A run folder that somebody else wrote: read only after its files have been checked."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from arena.errors import RecordError
from arena.results.record import Trial
from arena.runs.records import HEAD, WHOLE, RunRecords, read_run, trial_path

SUBMISSIONS = "submissions"
_MOST_FILES = 200_000
_MOST_BYTES = {"run.json": 16 << 20, "trials": 64 << 20, SUBMISSIONS: 4 << 20}
"""of one file, by the first part of its path; of any other file `_MOST_OTHER_BYTES`"""
_MOST_OTHER_BYTES = 128 << 20
_MOST_ROUNDS = 1024
"""of a case's timing"""
_LEAST, _GREATEST = 1e-9, 1e9
"""of latencies in ms, and of speedups"""


def read_folder(run: Path) -> RunRecords:
    """Read a run folder that anybody may have written; the loader of every command that reads finished runs.

    Raises:
        RecordError: it is no run folder, a record is none, contradicts itself or has a timing that no measurement
            has, or it holds a link, something that is neither file nor folder, or a file that is too large.
    """
    check_files(run.resolve())
    records = read_run(run)
    for trial in records.trials:
        file = trial_path(run, *trial.key)
        _check_numbers(file, trial)
        own, said = trial.used, records.info.used.get(trial.agent)
        if own is not None and said is not None and own.calibrates is not said.calibrates:
            raise RecordError(f"{file}: used.calibrates: its run says another; {WHOLE}")
    return records


def _check_numbers(file: Path, trial: Trial) -> None:
    """Raise `RecordError` where a timing has numbers, or rounds, that no measurement has."""
    for case in trial.evaluation.cases if trial.evaluation else ():
        timing = case.timing
        if timing is None:
            continue
        if len(timing.rounds) > _MOST_ROUNDS:
            raise RecordError(f"{file}: {case.case}: {len(timing.rounds)} rounds, more than {_MOST_ROUNDS}; {WHOLE}")
        for name in ("speedup", "baseline_ms", "candidate_ms"):
            found = getattr(timing, name)
            low = found.value if name == "speedup" else abs(found.value)
            if not (low == 0.0 or low >= _LEAST) or max(abs(found.low), abs(found.high)) > _GREATEST:
                text = f"{found.value:g} [{found.low:g}, {found.high:g}]"
                raise RecordError(f"{file}: {case.case}: {name}: {text} is out of range; {WHOLE}")


def read_submission(run: Path) -> RunRecords:
    """Read a run folder for a board: of one device, and no link itself.

    Raises:
        RecordError: as `read_folder` does, or it is a link or of several devices.
    """
    if run.is_symlink():
        raise RecordError(f"{run}: a link, not a folder; {WHOLE}")
    records = read_folder(run)
    if records.info.devices:
        raise RecordError(f"{run}: a run on several devices is not taken; measure each device in a run of its own")
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
        raise RecordError(f"{run}: not a folder; {WHOLE}")
    found = []
    for path, status in _walk(run):
        name = path.relative_to(run).as_posix()
        if not stat.S_ISREG(status.st_mode):
            raise RecordError(f"{run}: {name!r} is a link or no plain file; {WHOLE}")
        most = _MOST_BYTES.get(name.split("/", 1)[0], _MOST_OTHER_BYTES)
        if status.st_size > most:
            raise RecordError(f"{run}: {name!r} has {status.st_size} bytes, more than {most}; {WHOLE}")
        found.append(name)
        if len(found) > _MOST_FILES:
            raise RecordError(f"{run}: more than {_MOST_FILES} files; {WHOLE}")
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
            raise RecordError(f"{folder}: cannot be read ({problem.strerror}); {WHOLE}") from problem
