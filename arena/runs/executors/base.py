"""The interface of executors, and the judges that a run asks them for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from arena.runs.service.judge_pool import JudgePool
from arena.task.definition import Task


@dataclass(frozen=True)
class JudgesWanted:
    """The judges that a run needs."""

    platform: str
    devices: Sequence[int | None] = (None,)
    """numbers of GPUs of this machine; None is the first, or the CPU"""
    builds: bool = False
    """whether candidates are also compiled without a device, as sessions want; for GPUs here they always are"""
    corpora: tuple[Path, ...] = ()
    """folders of tasks; none: the shipped ones"""
    tasks: Mapping[str, Path] = field(default_factory=dict)
    """folders of the run's tasks, by id"""


def wanted_of(
    placed: Mapping[str, Sequence[str]], tasks: Mapping[str, Task], common: JudgesWanted
) -> list[JudgesWanted]:
    """Return what a run wants of judges for each platform.

    Args:
        placed: ids of tasks by platform.
        tasks: the tasks by id.
        common: all but platform and tasks; its devices are those of GPUs.
    """
    return [
        replace(
            common,
            platform=platform,
            devices=(None,) if platform == "cpu" else common.devices,
            tasks={name: tasks[name].path for name in names},
        )
        for platform, names in placed.items()
    ]


@contextmanager
def started(executor: Executor, wanted: Sequence[JudgesWanted]) -> Iterator[dict[str, JudgePool]]:
    """Start judges for several platforms; yields the pools by platform."""
    with ExitStack() as stack:
        yield {one.platform: stack.enter_context(executor.judges(one)) for one in wanted}


class Executor(Protocol):
    """Starts the judges of a run somewhere."""

    def describe(self, wanted: JudgesWanted) -> str:
        """Say what `judges` starts, such as `a judge`."""

    def judges(self, wanted: JudgesWanted) -> AbstractContextManager[JudgePool]:
        """Start judges, and stop them at the end; kill them when interrupted."""
