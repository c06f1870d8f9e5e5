"""The judge of task checks, `python -m arena.task_check.judge PLATFORM FD [DEVICE]`, and its client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from arena.judge.client import JudgeClient
from arena.judge.messages import CheckTask, Options, Progress, TaskChecked
from arena.model.check import TaskCheck


class TaskCheckClient(JudgeClient):
    """A judge process that also checks tasks."""

    module = "arena.task_check.judge"

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
    from arena.judge.service import main
    from arena.task_check.judge_service import TaskCheckService

    main(sys.argv[1:], TaskCheckService)
