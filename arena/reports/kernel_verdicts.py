"""Verdicts of a person on single kernels: RUN.verdicts.yaml among the findings, by SHA-256 of the kernel.

Used by `arena audit` and `arena site`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from arena.errors import FileError, UsageError
from arena.processes.printable import write_printable
from arena.results.bounds import Name, TaskId, spelled
from arena.results.record import Trial
from arena.runs.records import submission_folder
from arena.task.corpus import strict_yaml
from arena.task.definition import TaskType

_MOST_BYTES = 4 << 20
_PLACES = re.compile(r"\.(\w+)|\[(\d+)\]")
_PLACE = re.compile(r" - at `\$(.*?)`")
_HEAD = """\
# Verdicts on kernels, by SHA-256. `verdict` is null or one of: {words}.
# As RUN.verdicts.yaml in the folder of --findings, `arena site` shows them.
"""


class KernelVerdict(StrEnum):
    """A person's verdict on one kernel."""

    CLEAN = "clean"
    """its own work"""
    REWARD_HACK = "reward hack"
    """games the evaluation"""
    LEAK = "leak"
    """made with what the agent must not see, such as held-out cases or an expert"""
    CONTAMINATED = "contaminated"
    """a published solution that the model recalls"""
    COPIED = "copied"
    """another author's kernel, taken over"""
    BUG = "bug"
    """wrong, though it passed"""


class VerdictOnKernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel. `agent` and `task` are for the reader; `verdict` is None where nobody has read it yet."""

    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    agent: Name
    task: TaskId
    verdict: KernelVerdict | None = None
    note: Annotated[str, Meta(max_length=2000)] = ""


class VerdictFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: who read the kernels, when, and what was found."""

    by: Annotated[str, Meta(min_length=1, max_length=200)]
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")]
    kernels: Annotated[tuple[VerdictOnKernel, ...], Meta(max_length=100_000)]

    @property
    def by_digest(self) -> Mapping[str, VerdictOnKernel]:
        """The kernels that have a verdict."""
        return {one.digest: one for one in self.kernels if one.verdict is not None}


def verdicts_path(findings: Path, run: str) -> Path:
    """Return where the verdicts on a run lie: among your own findings, since a submission says nothing of itself."""
    return findings / f"{run}.verdicts.yaml"


def read_verdicts(path: Path) -> VerdictFile | None:
    """Read a file of verdicts; None where there is none.

    Raises:
        FileError: it is malformed; names the line.
    """
    if not path.is_file():
        return None
    if path.stat().st_size > _MOST_BYTES:
        raise FileError(path, f"has {path.stat().st_size} bytes, more than {_MOST_BYTES}")
    document = strict_yaml.parse(path)
    try:
        found = msgspec.convert(document.data, VerdictFile)
    except msgspec.ValidationError as problem:
        text = spelled(problem)
        at = _PLACE.search(text)
        place = tuple(int(item) if item else key for key, item in _PLACES.findall(at[1] if at else ""))
        raise document.error(place, _PLACE.sub("", text)) from None
    seen: set[str] = set()
    for number, one in enumerate(found.kernels):
        if one.digest in seen:
            raise document.error(("kernels", number, "digest"), "stands here twice; keep one verdict for each kernel")
        seen.add(one.digest)
    return found


def write_template(path: Path, kernels: Iterable[VerdictOnKernel]) -> Path:
    """Write a file of verdicts to fill in, one entry for each digest.

    Raises:
        UsageError: the file exists.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists; give the name of a new file")
    lines = [_HEAD.format(words=", ".join(KernelVerdict)), 'by: ""\ndate: "YYYY-MM-DD"\nkernels:\n']
    unique = {one.digest: one for one in kernels}
    for one in unique.values():
        values = msgspec.to_builtins(one)
        texts = [f"{name}: {json.dumps(values[name])}" for name in VerdictOnKernel.__struct_fields__]
        lines.append("  - " + "\n    ".join(texts) + "\n")
    return write_printable(path, "".join(lines) if unique else "".join(lines).rstrip() + " []\n")


def kernel_file(run: Path, trial: Trial) -> Path:
    """Return where the kernel of a trial lies; there is none where nothing was handed in."""
    return submission_folder(run, *trial.key) / TaskType(trial.task_type).kernel_file


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a kernel, as files of verdicts name it."""
    return hashlib.sha256(data).hexdigest()
