"""The judge of task checks, `python -m arena.checks.tasks.judge PLATFORM FD [DEVICE]`, and its client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import CheckTask, Progress, TaskChecked
from arena.results.check import TaskCheck
from arena.task.options import Options


class TaskCheckClient(JudgeClient):
    """A judge process that also checks tasks."""

    module = "arena.checks.tasks.judge"

    def check(
        self,
        task: Path,
        options: Options,
        most_mutants: int = 0,
        *,
        every_launch: bool = False,
        timing: bool = True,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> TaskCheck:
        """Check a task: its items, or with `most_mutants` which mutants are rejected.

        Raises:
            InfrastructureError: the judge failed.
        """
        answer = self._ask(CheckTask(str(task.resolve()), options, most_mutants, every_launch, timing), on_progress)
        assert isinstance(answer, TaskChecked)
        return answer.check


if __name__ == "__main__":
    from arena.checks.tasks.judge_service import TaskCheckService
    from arena.judge.process.service import main

    main(sys.argv[1:], TaskCheckService)
