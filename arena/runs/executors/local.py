"""Judges on this machine, one for each device: the default."""

from __future__ import annotations

from contextlib import AbstractContextManager

from arena.runs.executors.base import JudgesWanted
from arena.runs.service import judge_pool
from arena.runs.service.judge_pool import JudgePool


class LocalExecutor:
    """Judge processes beside the runner."""

    def describe(self, wanted: JudgesWanted) -> str:
        """Say how many judges there will be."""
        return "a judge" if len(wanted.devices) == 1 else f"{len(wanted.devices)} judges"

    def judges(self, wanted: JudgesWanted) -> AbstractContextManager[JudgePool]:
        """Start a judge for each device."""
        return judge_pool.started(wanted.platform, wanted.devices, builds=wanted.builds or None)
