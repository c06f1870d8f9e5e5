"""What happens beside the stages of an evaluation, and what a stage says of its cases."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from arena.errors import InfrastructureError
from arena.judge.compile.cross_compile import CrossCompilation
from arena.judge.correctness.verify import OutputCheck
from arena.judge.evaluate import CandidateEvaluation, JudgeContext
from arena.judge.performance.baselines import BaselineResult
from arena.judge.performance.timer import Timer
from arena.judge.workers.watchdog import WatchedWorker
from arena.judge.workers.worker import ForkServers
from arena.platforms.cpu.platform import CpuPlatform
from arena.results.effort import Effort
from arena.results.environment import Environment
from arena.results.failures import failures
from arena.results.messages import bare
from arena.results.outcome import Outcome, outcome_of
from arena.results.record import Evaluation, Split
from arena.results.session import Evaluated
from arena.results.verdict import Stage, Status
from arena.runs.service.feedback import feedback
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.options import Options
from tests.task.corpus.folders import write_task

QUICK = Options(seeds=1, max_work=1e5, timing_budget_s=0.01, call_timeout_s=60.0)
SEEN_ONLY = structs.replace(QUICK, heldout=False)


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
    with closing(CandidateEvaluation(task, options, context)) as candidate_evaluation:
        return candidate_evaluation.run(kernel, environment_of(context), unheard)


def environment_of(context: JudgeContext) -> Callable[[str], Environment]:
    return lambda isolation: Environment(context.timer.facts, isolation)


def kernel_of(task: Task) -> Path:
    assert task.baseline_kernel is not None
    return task.baseline_kernel


def spoiled(task: Task, folder: Path, first_line: str) -> Path:
    """The starting kernel, whose entry begins otherwise."""
    text = kernel_of(task).read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith(f"def {task.entry}("))
    file = folder / "kernel.py"
    file.write_text(text.replace(head, f"{head}\n    {first_line}"), encoding="utf-8")
    return file


@pytest.mark.slow
def test_the_baselines_host_is_ready_when_its_turn_comes(task: Task, context: JudgeContext) -> None:
    """Also where the baseline is known, so that nothing else had to start it."""
    for _ in range(2):
        candidate_evaluation = CandidateEvaluation(task, QUICK, context)
        shutil.copyfile(kernel_of(task), candidate_evaluation._file)
        assert candidate_evaluation._compile(unheard).status is Status.PASSED
        candidate_evaluation._await_start("baseline")
        assert candidate_evaluation._baselines.worker_program.worker.isolation
        assert "_measured_in" not in vars(candidate_evaluation._baselines), "what measured it alone has ended"
        candidate_evaluation.close()


@pytest.mark.slow
def test_workers_wait_for_a_candidate_that_is_still_compiled(
    task: Task, context: JudgeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are timed start in one order, whether the baseline is known or was measured first elsewhere."""
    started: list[str] = []
    spawn = context.fork_servers.spawn

    def counted(*arguments: Any) -> Any:
        started.append("worker")
        return spawn(*arguments)

    monkeypatch.setattr(context.fork_servers, "spawn", counted)
    cold = replace(context, cache={})
    for waiting in (1, 2):
        started.clear()
        with closing(CandidateEvaluation(task, SEEN_ONLY, cold)) as candidate_evaluation:
            candidate_evaluation.start_workers()
            assert candidate_evaluation.has_started()
            assert len(started) == waiting
            found = candidate_evaluation.run(kernel_of(task), environment_of(context), unheard)
        assert found.status is Status.PASSED
        assert len(started) == {1: 3, 2: 2}[waiting]


@pytest.mark.slow
@pytest.mark.parametrize("split", ["seen", "heldout"])
def test_a_waiting_worker_sees_what_is_compiled_of_its_own_split_alone(
    task: Task, context: JudgeContext, tmp_path: Path, split: str
) -> None:
    """Also where the folders were empty when it was started."""
    evaluated(task, context, kernel_of(task), SEEN_ONLY)
    compiled = tmp_path / "compiled"
    for folder in ("seen", "heldout"):
        (compiled / folder).mkdir(parents=True)
    with closing(CandidateEvaluation(task, SEEN_ONLY, context, compiled)) as candidate_evaluation:
        candidate_evaluation.start_workers()
        assert candidate_evaluation.has_started()
        (compiled / split / "kernel").mkdir()
        wanted = ["kernel"] if split == "seen" else []
        look = (
            f"import os\ntry:\n    found = os.listdir({str(compiled / split)!r})\nexcept OSError:\n    found = []\n"
            f"assert found == {wanted}, found\n"
        )
        file = tmp_path / "candidate.py"
        file.write_text(look + kernel_of(task).read_text(encoding="utf-8"), encoding="utf-8")
        found = candidate_evaluation.run(file, environment_of(context), unheard)
    assert found.status is Status.PASSED, found.verdicts


@pytest.mark.slow
def test_a_worker_does_not_bring_back_a_folder_of_a_candidate_that_was_refused(
    task: Task, context: JudgeContext, tmp_path: Path
) -> None:
    evaluated(task, context, kernel_of(task), SEEN_ONLY)
    with closing(CandidateEvaluation(task, SEEN_ONLY, context, tmp_path / "compiled")) as candidate_evaluation:
        candidate_evaluation.start_workers()
        assert not candidate_evaluation.has_started()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_baseline_is_timed_with_the_same_history_whether_it_is_known_or_not(
    task: Task, context: JudgeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that stands beside the candidate's is asked the same, in the same order."""
    asked: dict[int, list[str]] = {}
    ask = WatchedWorker.ask

    def noted(worker: WatchedWorker, message: Any, *arguments: Any, **named: Any) -> Any:
        asked.setdefault(id(worker), []).append(type(message).__name__)
        return ask(worker, message, *arguments, **named)

    monkeypatch.setattr(WatchedWorker, "ask", noted)
    cold, told = replace(context, cache={}), []
    for _ in range(2):
        asked.clear()
        with closing(CandidateEvaluation(task, SEEN_ONLY, cold)) as candidate_evaluation:
            found = candidate_evaluation.run(kernel_of(task), environment_of(context), unheard)
            baseline = candidate_evaluation._baselines.worker_program
            told.append(
                [name for name in asked[id(baseline._worker)] if name in ("Load", "Bind", "Call", "Prepare")][:4]
            )
        assert found.status is Status.PASSED
    assert told[0] == told[1]


def test_a_judge_says_where_no_seen_case_is_left(task: Task, context: JudgeContext) -> None:
    with pytest.raises(InfrastructureError, match=r"no seen case is left, with max_work .* only \['heldout-01'\]"):
        CandidateEvaluation(task, structs.replace(QUICK, case=("heldout-01",)), context)


def test_every_case_is_checked_and_timed(task: Task, context: JudgeContext) -> None:
    evaluation = evaluated(task, context, kernel_of(task))
    assert evaluation.status is Status.PASSED
    assert [verdict.stage for verdict in evaluation.verdicts] == list(Stage)
    assert all(case.timing is not None and case.error_ratio is not None for case in evaluation.cases)


@pytest.mark.slow
def test_cases_for_correctness_alone_are_not_timed(
    task: Task, context: JudgeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, of two cases that say so: an emulation times all that it runs."""
    timed = {next(case.case for case in evaluated(task, context, kernel_of(task)).split(split)) for split in Split}
    for module in ("evaluate", "performance.baselines"):
        monkeypatch.setattr(f"arena.judge.{module}.is_timed", lambda case, *_: case.id in timed)
    cold = replace(context, cache={})
    evaluation = evaluated(task, cold, kernel_of(task))
    assert evaluation.status is Status.PASSED
    assert {case.case for case in evaluation.cases if case.timing is not None} == timed
    assert all(case.candidate is Status.PASSED and case.error_ratio is not None for case in evaluation.cases)
    assert {case for (_, case, _), known in cold.cache.items() if known.isolated_ms is not None} == timed


@pytest.mark.parametrize(
    ("effort", "stages", "timed"),
    [
        (Effort.CORRECTNESS, [Stage.COMPILE, Stage.CORRECTNESS, Stage.HELDOUT], set()),
        (Effort.SCREEN, list(Stage), {Split.SEEN}),
    ],
)
def test_effort_decides_what_is_timed(
    task: Task, context: JudgeContext, effort: Effort, stages: list[Stage], timed: set[Split]
) -> None:
    cold, split_of = replace(context, cache={}), {case.id: case.split for case in task.cases}
    evaluation = evaluated(task, cold, kernel_of(task), structs.replace(QUICK, effort=effort))
    assert evaluation.status is Status.PASSED and evaluation.effort is effort
    assert [verdict.stage for verdict in evaluation.verdicts] == stages
    assert {case.split for case in evaluation.cases if case.timing is not None} == timed
    assert all(case.candidate is Status.PASSED for case in evaluation.cases)
    assert {split_of[case] for (_, case, _), known in cold.cache.items() if known.isolated_ms} == timed
    assert (evaluation.seen_speedup is not None) == bool(timed)


ROUTES = """
name: double
summary: Every element of x twice.
entry: double
axes:
  M: {doc: rows, domain: [1, 64]}
inputs:
  x: {shape: [M, 32], dtype: float32, fill: normal}
outputs:
  y: {shape: [M, 32], dtype: float32}
work: {flops: 32 * M}
"""
TURNS = """
import triton
import triton.language as tl

@triton.jit
def rows(x, y, LIMIT: tl.constexpr):
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    values = tl.load(x + at)
    turns = tl.where(tl.max(values) > LIMIT, 60, 1)
    for _ in range(turns):
        tl.store(y + at, values * 2)

def double(x, y):
    rows[(x.shape[0],)](x, y, LIMIT)
"""


def test_a_kernel_that_is_slow_for_other_values_counts_as_slow(context: JudgeContext, tmp_path: Path) -> None:
    """It is right for all of them, and as fast as the baseline for those that a task draws as a rule."""
    usual, rest = "- {M: 3, timed: true}", "".join(f"- {{M: {size}}}\n" for size in (4, 5, 6, 7))
    seen = usual.replace("}", ", regimes: {large: {fills: {x: {normal: [900, 1]}}}}}") + "\n" + rest
    heldout = "".join(f"- {{kind: edge, M: {size}}}\n" for size in range(11, 16))
    folder = write_task(tmp_path, "triton2triton/suite/double", task=ROUTES, seen=seen, heldout=heldout)
    (folder / "reference.py").write_text("def reference(x):\n    return x * 2\n", encoding="utf-8")
    (folder / "kernel.py").write_text(TURNS.replace("LIMIT)\n", "1e9)\n"), encoding="utf-8")
    routing = tmp_path / "routing.py"
    routing.write_text(TURNS.replace("LIMIT)\n", "500)\n"), encoding="utf-8")
    options = structs.replace(SEEN_ONLY, case=("seen-01", "seen-01.large"), timing_budget_s=1.0)
    evaluation = evaluated(load_task(folder), context, routing, options)
    assert evaluation.status is Status.PASSED
    found = {case.case: case.credit for case in evaluation.cases if case.credit}
    large = found["seen-01.large"]
    assert large.high < found["seen-01"].low and evaluation.seen_speedup == large.value < 0.5


def test_results_hold_what_recorded_traffic_says_of_their_cases(
    task: Task, context: JudgeContext, tmp_path: Path
) -> None:
    """Also those of cases that are not reached, since the candidate is wrong before."""
    calls = {case.id: number for number, case in enumerate(task.cases, start=1)}
    seen, heldout = (tuple(replace(one, calls=calls[one.id]) for one in split) for split in (task.seen, task.heldout))
    spoilt = spoiled(task, tmp_path, "y.fill_(0.0); return")
    evaluation = evaluated(replace(task, seen=seen, heldout=heldout), context, spoilt)
    assert {case.candidate for case in evaluation.cases} == {Status.WRONG_RESULT, Status.NOT_RUN}
    assert all(case.calls == calls[case.case] for case in evaluation.cases)


def test_the_first_failure_in_the_tasks_order_is_the_stages(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    evaluation = evaluated(task, context, spoiled(task, tmp_path, "y.fill_(0.0); return"))
    seen = [case for case in evaluation.cases if case.split == "seen"]
    assert {case.candidate for case in seen} == {Status.WRONG_RESULT}
    assert evaluation.verdicts[-1].detail.startswith(seen[0].label)


@pytest.mark.slow
def test_after_a_call_without_end_no_case_begins(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    patience = structs.replace(QUICK, call_timeout_s=2.0)
    started = time.monotonic()
    evaluated(task, context, kernel_of(task), patience)
    control_s = time.monotonic() - started
    started = time.monotonic()
    evaluation = evaluated(task, context, spoiled(task, tmp_path, "while y.dim() > 0: pass"), patience)
    assert evaluation.status is Status.TIMEOUT
    assert time.monotonic() - started < patience.call_timeout_s + max(3 * patience.call_timeout_s, 3 * control_s)
    ends = [case.candidate for case in evaluation.cases if case.split == "seen"]
    assert ends == [Status.TIMEOUT, *[Status.NOT_RUN] * (len(ends) - 1)]


@pytest.mark.slow
def test_a_call_that_the_baseline_does_not_end_either_is_not_the_last(
    task: Task, context: JudgeContext, tmp_path: Path
) -> None:
    patience = structs.replace(QUICK, call_timeout_s=2.0)
    shapes = {case.id: tuple(case.values[axis.name] for axis in task.axes) for case in task.cases}
    case = next(case for case in task.heldout if [*shapes.values()].count(shapes[case.id]) == 1)
    spoilt = spoiled(task, tmp_path, f"while tuple(x.shape) == {shapes[case.id]}: pass")
    endless = BaselineResult(OutputCheck(Status.TIMEOUT, "none"))
    known = replace(context, cache={(task.content_hash, case.id, patience): endless})
    evaluation = evaluated(task, known, spoilt, patience)
    ends = {case.case: case.candidate for case in evaluation.cases}
    assert ends.pop(case.id) is Status.TIMEOUT
    assert set(ends.values()) == {Status.PASSED}
    assert outcome_of(evaluation) is Outcome.SOLVED


FAILING = """\
import triton
import triton.language as tl


@triton.jit
def inner(x):
    return x + undefined_thing


@triton.jit
def kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, inner(tl.load(x_ptr + offsets)))


def rms_norm(x, weight, eps, y):
    kernel[(1,)](x, y, BLOCK=128)
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "kernel.py", line 17, in rms_norm
    kernel[(1,)](x, y, BLOCK=128)
  File "kernel.py", line 13, in kernel
    tl.store(y_ptr + offsets, inner(tl.load(x_ptr + offsets)))
  File "kernel.py", line 7, in inner
    return x + undefined_thing
NameError: name 'undefined_thing' is not defined
"""


def test_a_failing_kernel_is_told_by_its_own_frames_once(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(FAILING, encoding="utf-8")
    done = evaluated(task, context, file)
    said = {bare(case.detail) for case in done.cases if case.split is Split.SEEN}
    assert len(done.cases) > 2 and said == {TRACEBACK.strip()}
    text = feedback(done, Evaluated(1, 0.0, 0.0, done.status, None, done.candidate_hash), 1).text
    shown = "\n".join(failures(done))
    for shown_to in (text, shown):
        assert shown_to.count(TRACEBACK.strip()) == 1 and "seen-01" in shown_to and "arena" not in shown_to


def test_a_syntax_error_names_the_candidates_line(task: Task, context: JudgeContext, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(FAILING.replace("def inner(x):", "def inner(x:"), encoding="utf-8")
    done = evaluated(task, context, file)
    assert done.status is Status.COMPILE_ERROR
    said = 'Traceback (most recent call last):\n  File "kernel.py", line 6\n    def inner(x:\n'
    assert done.verdicts[-1].detail.startswith(said) and "SyntaxError" in done.verdicts[-1].detail
