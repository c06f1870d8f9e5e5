"""What happens beside the stages of an evaluation, and what a stage says of its cases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from arena.judge.cross_compile import CrossCompilation
from arena.judge.evaluate import CandidateEvaluation, JudgeContext
from arena.judge.messages import Options
from arena.judge.timer import Timer
from arena.judge.workers import ForkServers
from arena.model.environment import Environment
from arena.model.record import Evaluation
from arena.model.task import Task
from arena.model.verdict import Stage, Status
from arena.platforms.cpu import CpuPlatform

QUICK = Options(seeds=1, max_work=1e5, timing_budget_s=0.01, call_timeout_s=5.0)


@pytest.fixture(scope="module")
def context() -> Iterator[JudgeContext]:
    device, fork_servers, cross_compilation = (
        CpuPlatform(),
        ForkServers("cpu", spins=False, interprets=True),
        CrossCompilation(),
    )
    yield JudgeContext(Timer(device, device.facts()), fork_servers, cross_compilation, {})
    cross_compilation.close()
    fork_servers.close()


def unheard(stage: Stage, done: int, total: int) -> None:
    """Nobody follows the progress."""


def evaluated(task: Task, context: JudgeContext, kernel: Path, options: Options = QUICK) -> Evaluation:
    return CandidateEvaluation(task, kernel, options, context).run(
        lambda isolation: Environment(context.timer.facts, isolation), unheard
    )


def kernel_of(task: Task) -> Path:
    assert task.starting_kernel is not None
    return task.starting_kernel


def spoiled(task: Task, folder: Path, first_line: str) -> Path:
    """The starting kernel, whose entry begins otherwise."""
    text = kernel_of(task).read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith(f"def {task.entry}("))
    file = folder / "kernel.py"
    file.write_text(text.replace(head, f"{head}\n    {first_line}"), encoding="utf-8")
    return file


def test_the_baselines_host_is_ready_when_its_turn_comes(task: Task, context: JudgeContext) -> None:
    """Also where the baseline is known, so that nothing else had to start it."""
    for _ in range(2):
        candidate_evaluation = CandidateEvaluation(task, kernel_of(task), QUICK, context)
        assert candidate_evaluation._compile(unheard).status is Status.PASSED
        candidate_evaluation._await_baseline()
        assert candidate_evaluation._baselines.worker_program.worker.isolation
        candidate_evaluation._clean_up()


def test_every_case_is_checked_and_timed(task: Task, context: JudgeContext) -> None:
    evaluation = evaluated(task, context, kernel_of(task))
    assert evaluation.status is Status.PASSED
    assert [verdict.stage for verdict in evaluation.verdicts] == list(Stage)
    assert all(case.timing is not None and case.error_ratio is not None for case in evaluation.cases)


def test_the_first_failure_in_the_tasks_order_is_the_stages(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    evaluation = evaluated(task, context, spoiled(task, tmp_path, "y.fill_(0.0); return"))
    seen = [case for case in evaluation.cases if case.split == "seen"]
    assert {case.candidate for case in seen} == {Status.WRONG_RESULT}
    assert evaluation.verdicts[-1].detail.startswith(seen[0].label)


@pytest.mark.slow
def test_after_a_call_without_end_no_case_begins(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    patience = structs.replace(QUICK, call_timeout_s=2.0)
    evaluated(task, context, kernel_of(task), patience)
    started = time.monotonic()
    evaluation = evaluated(task, context, spoiled(task, tmp_path, "while y.dim() > 0: pass"), patience)
    assert evaluation.status is Status.TIMEOUT
    assert time.monotonic() - started < 4 * patience.call_timeout_s
    ends = [case.candidate for case in evaluation.cases if case.split == "seen"]
    assert ends == [Status.TIMEOUT, *[Status.NOT_RUN] * (len(ends) - 1)]
