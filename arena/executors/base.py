"""The interface of executors, and the judges that a run asks them for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from arena.service.judge_pool import JudgePool


@dataclass(frozen=True)
class JudgesWanted:
    """The judges that a run needs."""

    platform: str
    devices: Sequence[int | None] = (None,)
    """numbers of GPUs of this machine; None is the first, or the CPU"""
    builds: bool = False
    """whether candidates are also compiled without a device, as sessions of agents want"""
    corpora: tuple[Path, ...] = ()
    """folders of tasks; none: the shipped ones"""
    tasks: Mapping[str, Path] = field(default_factory=dict)
    """folders of the run's tasks, by id"""


class Executor(Protocol):
    """Starts the judges of a run somewhere."""

    def describe(self, wanted: JudgesWanted) -> str:
        """Say what `judges` starts, such as `a judge`."""

    def judges(self, wanted: JudgesWanted) -> AbstractContextManager[JudgePool]:
        """Start judges, and stop them at the end; kill them when interrupted."""
