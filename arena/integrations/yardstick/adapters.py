"""Our adapters by engine and task.

`integrations/yardsticks/<engine>/<suite>/<name>.py` is for `triton2triton/<suite>/<name>`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.integrations.yardstick.bundle import CandidateText, bundle
from arena.integrations.yardstick.engines import PACKAGES
from arena.integrations.yardstick.sources import Sources
from arena.package import resource
from arena.task.corpus.selection import select
from arena.task.task_type import TaskType

ADAPTERS = resource("integrations/yardsticks")
_REPLACEMENTS = "replacements.py"


@dataclass(frozen=True)
class Adapter:
    """One adapter file.

    Attributes:
        engine: a key of `PACKAGES`.
        task: id of the task whose entry the file defines.
        path: the file.
    """

    engine: str
    task: str
    path: Path

    def candidate(self, sources: Sources) -> CandidateText:
        """Make the candidate; raises as `bundle` does."""
        replacements = self.path.parents[1] / _REPLACEMENTS
        return bundle(self.path, sources, replacements if replacements.is_file() else None)


def find_adapters(tasks: Sequence[str] = (), engines: Sequence[str] = (), folder: Path = ADAPTERS) -> list[Adapter]:
    """Return the adapters for some tasks and engines, sorted by task.

    Args:
        tasks: ids, bare names or globs; empty: all.
        engines: keys of `PACKAGES`; empty: all.
        folder: where the adapters lie.

    Raises:
        UsageError: a pattern chooses no task that has an adapter.
    """
    found = [
        Adapter(engine, f"{TaskType.TRITON2TRITON}/{path.parent.name}/{path.stem}", path)
        for engine in PACKAGES
        for path in (folder / engine).glob("*/*.py")
        if not engines or engine in engines
    ]
    chosen = set(select(tuple(sorted({one.task for one in found})), list(tasks) or ["*"]))
    return sorted((one for one in found if one.task in chosen), key=lambda one: (one.task, one.engine))


def digest(candidate: CandidateText, task_hash: str) -> str:
    """Return what tells one measurement from another: the candidate, and the task with its baseline and cases."""
    return hashlib.sha256(f"{task_hash}\0{candidate.text}".encode()).hexdigest()[:16]
