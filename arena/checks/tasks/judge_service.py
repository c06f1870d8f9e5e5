"""The judge's half of a task check: evaluations, and checks of tasks, in one process with one device."""

from __future__ import annotations

from pathlib import Path

from arena.checks.tasks.checker import TaskChecker, reference_failed
from arena.errors import FileError
from arena.judge.process.messages import CheckTask, FromJudge, Progress, TaskChecked, ToJudge
from arena.judge.process.service import JudgeService, supported
from arena.judge.selection import bounded
from arena.processes.wire import Channel
from arena.results.check import TaskCheck
from arena.results.verdict import Stage
from arena.task.corpus.task_folder import load_task


class TaskCheckService(JudgeService):
    """A judge that also checks tasks."""

    def answer(self, request: ToJudge, channel: Channel[FromJudge, ToJudge]) -> FromJudge:
        """Answer one request, also `CheckTask`."""
        if isinstance(request, CheckTask):
            return self._check_task(request, channel)
        return super().answer(request, channel)

    def _check_task(self, request: CheckTask, channel: Channel[FromJudge, ToJudge]) -> TaskChecked:
        def report(done: int, total: int) -> None:
            channel.send(Progress(Stage.CORRECTNESS, done, total))

        facts = self.context.timer.facts
        task = supported(load_task(Path(request.task)).on(facts.arch))
        try:
            checker = TaskChecker(
                task,
                bounded(request.options, facts),
                self.context,
                every_launch=request.every_launch,
                timing=request.timing,
            )
        except FileError as problem:  # there is no reference to ask
            items = (reference_failed(problem),)
            return TaskChecked(TaskCheck(task.id, task.content_hash, facts.platform, items, device=facts.name))
        return TaskChecked(checker.run(request.most_mutants, report))
