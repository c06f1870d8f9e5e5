"""Compare the kernels of a run with those of the corpus, of the run and of folders. Used by `arena audit`."""

from __future__ import annotations

import heapq
import os
import stat
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from arena.reports.fingerprints import SUFFIXES, fingerprints
from arena.reports.kernel_verdicts import VerdictFile, digest_of, kernel_file
from arena.results.record import Trial
from arena.runs.records import RunRecords
from arena.task.definition import TaskType

NOTE = (
    "Shared: of the kernel's fingerprints (winnowing; names and layout do not count), the share that the neighbour "
    "has. Beyond baseline: the same over fingerprints that the task's own baseline lacks, which order the neighbours. "
    "A kernel that keeps its baseline's text is near it by construction. "
    "A share alone is no evidence of copying: read both texts."
)
NOT_RECORDED = "not recorded"
_MOST_BYTES, _MOST_FILES = 2 << 20, 100_000
"""of one file below a folder of the user's, and of one such folder"""
_STEMS = ("kernel", "expert")


@dataclass(frozen=True)
class Neighbour:
    """A text near a kernel. `beyond_baseline` is None where every fingerprint is the baseline's."""

    name: str
    shared: float
    beyond_baseline: float | None


@dataclass(frozen=True)
class AuditedKernel:
    """One kernel of a run. `own_baseline` is None where its task has no baseline kernel."""

    agent: str
    task: str
    attempt: int
    status: str
    digest: str
    fingerprints: int
    own_baseline: float | None
    neighbours: tuple[Neighbour, ...]
    machine_code: str
    verdict: str = ""


@dataclass
class SourceFolder:
    """A folder that kernels are compared with, and how many of its files were read and skipped."""

    path: Path
    read: int = 0
    skipped: int = 0

    def texts(self, but: Path, progress: Callable[[int], None]) -> Iterator[tuple[Path, str]]:
        """Yield its source files; links are not followed.

        Args:
            but: a folder to leave out.
            progress: gets the number of files so far.
        """
        for parent, folders, names in os.walk(self.path.resolve()):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and Path(parent, one) != but)
            for name in sorted(names):
                if not name.endswith(SUFFIXES):
                    continue
                text = _text(Path(parent, name)) if self.read < _MOST_FILES else None
                if text is None:
                    self.skipped += 1
                    continue
                self.read += 1
                progress(self.read)
                yield Path(parent, name), text


@dataclass
class _Kernel:
    trial: Trial
    digest: str
    prints: frozenset[int]
    own: frozenset[int] | None
    near: list[tuple[int, int, str]] = field(default_factory=list)
    """a heap: shared fingerprints beyond the baseline, all shared ones, the name"""


class _Index:
    """The fingerprints of all kernels, by which one text after the other is compared."""

    def __init__(self, kernels: Sequence[_Kernel], most: int) -> None:
        self._kernels, self._most = kernels, most
        self._owners: dict[int, list[int]] = {}
        for place, kernel in enumerate(kernels):
            for one in kernel.prints:
                self._owners.setdefault(one, []).append(place)

    def compare(self, name: str, prints: frozenset[int], but: Container[int] = ()) -> None:
        """Take a text for a neighbour of the kernels that it shares something with, but not of those at `but`."""
        shared, beyond = Counter[int](), Counter[int]()
        for one in prints & self._owners.keys():
            for place in self._owners[one]:
                shared[place] += 1
                beyond[place] += one not in (self._kernels[place].own or ())
        for place, count in shared.items():
            kernel = self._kernels[place]
            if place not in but:
                heapq.heappush(kernel.near, (beyond[place], count, name))
                if len(kernel.near) > self._most:
                    heapq.heappop(kernel.near)


def audit_run(
    run: RunRecords,
    tasks: Mapping[str, Path],
    against: Sequence[SourceFolder],
    most: int,
    verdicts: VerdictFile | None = None,
    progress: Callable[[SourceFolder, int], None] = lambda folder, files: None,
) -> tuple[AuditedKernel, ...]:
    """Return every kernel that a run keeps with its nearest neighbours.

    Args:
        run: as `read_folder` returns it.
        tasks: the folders of the corpus by task id, whose baselines and experts are compared.
        against: other folders; their counts are updated.
        most: neighbours to keep for each kernel.
        verdicts: what a person found.
        progress: gets a folder and how many of its files are read.
    """
    corpus = dict(_corpus(tasks))
    kernels = list(_kernels(run, corpus))
    index = _Index(kernels, most)
    for (task, stem), prints in corpus.items():
        own = [place for place, one in enumerate(kernels) if one.trial.task == task and stem == "kernel"]
        index.compare(f"{stem} of {task}", prints, own)
    for other in kernels:
        agent, task, attempt = other.trial.key
        own = [place for place, one in enumerate(kernels) if one.trial.key[:2] == (agent, task)]
        index.compare(f"{agent}'s {task}, attempt {attempt}", other.prints, own)
    for folder in against:
        root = folder.path.resolve()
        for path, text in folder.texts(run.path.resolve(), partial(progress, folder)):
            index.compare(str(folder.path / path.relative_to(root)), fingerprints(text, path.suffix))
    found = {} if verdicts is None else verdicts.by_digest
    return tuple(_audited(one, str(found[one.digest].verdict) if one.digest in found else "") for one in kernels)


def _corpus(tasks: Mapping[str, Path]) -> Iterator[tuple[tuple[str, str], frozenset[int]]]:
    for task, folder in tasks.items():
        for stem in _STEMS:
            path = folder / f"{stem}{Path(TaskType(task.split('/')[0]).kernel_file).suffix}"
            if path.is_file():
                yield (task, stem), fingerprints(path.read_text(encoding="utf-8"), path.suffix)


def _kernels(run: RunRecords, corpus: Mapping[tuple[str, str], frozenset[int]]) -> Iterator[_Kernel]:
    for trial in run.trials:
        path = kernel_file(run.path, trial)
        if path.is_file():
            data = path.read_bytes()
            prints = fingerprints(data.decode("utf-8", "replace"), path.suffix)
            yield _Kernel(trial, digest_of(data), prints, corpus.get((trial.task, "kernel")))


def _audited(kernel: _Kernel, verdict: str) -> AuditedKernel:
    total, own = len(kernel.prints), kernel.own
    new = len(kernel.prints - (own or frozenset()))
    near = tuple(
        Neighbour(name, count / total, beyond / new if new else None)
        for beyond, count, name in sorted(kernel.near, key=lambda one: (-one[0], -one[1], one[2]))
    )
    share = None if own is None or not total else (total - new) / total
    trial = kernel.trial
    return AuditedKernel(
        *trial.key, str(trial.status), kernel.digest, total, share, near, _machine_code(trial), verdict
    )


def _machine_code(trial: Trial) -> str:
    """Return what executing the cross-compiled code showed; records hold no list of its instructions."""
    targets = () if trial.evaluation is None else trial.evaluation.targets
    found = [f"{one.target} {one.machine_code.outcome}" for one in targets if one.machine_code is not None]
    return f"{', '.join(found)}; instructions {NOT_RECORDED}" if found else NOT_RECORDED


def _text(path: Path) -> str | None:
    """Return the text of a plain file of bounded size; None where it is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                return None
            return file.read(_MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def audit_frame(kernels: Sequence[AuditedKernel]) -> pd.DataFrame:
    """Return one row per kernel and neighbour; a kernel without neighbours has one row."""
    rows = [
        {
            "Agent": one.agent,
            "Task": one.task,
            "Attempt": one.attempt,
            "Status": one.status,
            "Own baseline": _percent(one.own_baseline),
            "Nearest": near.name if near else "none",
            "Shared": _percent(near.shared if near else None),
            "Beyond baseline": _percent(near.beyond_baseline if near else None),
            "Machine code": one.machine_code,
            "Verdict": one.verdict or "not read",
            "SHA-256": one.digest,
        }
        for one in kernels
        for near in (one.neighbours or (None,))
    ]
    return pd.DataFrame(rows)


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.0%}"
