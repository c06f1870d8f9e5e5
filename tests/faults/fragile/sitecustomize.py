"""First on `PYTHONPATH`: a judge, and a builder, that die over a candidate that says so."""

from __future__ import annotations

import os
from pathlib import Path

from arena.judge.compile import rules
from arena.task.definition import Task

_whole = rules.check


def _check(task: Task, candidate: Path) -> None:
    if b"ENDS ITS JUDGE" in candidate.read_bytes():
        os._exit(9)
    _whole(task, candidate)


rules.check = _check
