"""Candidates that try to look better than they are, each with the status it must get, on the CPU and on a GPU.

The expected status stands in the header of each file under `tests/cheats/<task>/` (`tests/cheat_fixtures.py` reads it).
`_kernel.py` or `_kernel.hip`, the baseline, stands in for the line `<kernel>` in each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from arena.judge.process.client import JudgeClient
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options
from tests.candidates import HERE, TASK_OF, assembled, name
from tests.cheat_fixtures import CheatFixture, cheat_fixtures

OPTIONS = Options(heldout=False, seeds=3, call_timeout_s=6.0, timing_budget_s=0.05)
_CPU_TRIES = 3  # other tests share the cores: a mismatch of timings may be their doing
_PATIENCE_S = 60.0
_LONG = {"loops_forever", "compiled_by_pytorch", "answers_ahead", "answers_nested_without_end"}
CPU_OPTIONS = structs.replace(OPTIONS, max_work=5e4)
GPU_OPTIONS = structs.replace(OPTIONS, call_timeout_s=60.0)
"""all seen cases: most cheats are about those that are timed; one thread a row makes a pass of seconds"""


def shown(platform: str) -> list[object]:
    """The fixtures as parameters: those not caught yet must fail, or the corpus is out of date.

    The first fixture of each status and language that takes little time runs with every change; the others are slow.
    """
    found = []
    quick = set()
    for fixture in cheat_fixtures():
        what = (fixture.path.suffix, fixture.expected.get(platform))
        every_change = what not in quick and name(fixture.path).split("-")[-1] not in _LONG
        marks = [] if every_change else [pytest.mark.slow]
        if every_change:
            quick.add(what)
        if platform in fixture.meaningless:
            marks.append(pytest.mark.skip(reason=fixture.meaningless[platform]))
        elif platform in fixture.uncaught:
            marks.append(pytest.mark.xfail(reason=fixture.uncaught[platform], strict=True))
        found.append(pytest.param(fixture, id=name(fixture.path), marks=marks))
    return list(found)


def evaluate(judge: JudgeClient, fixture: CheatFixture, folder: Path, options: Options) -> Evaluation:
    """One fixture through the gates, with held-out cases where it is about these."""
    task = TASKS / TASK_OF[fixture.path.parent.name]
    ends = any(Status.TIMEOUT in wanted for wanted in fixture.expected.values())
    options = structs.replace(options, heldout=fixture.heldout)
    if not ends:  # the limit guards against a hang alone, and others share the machine
        options = structs.replace(options, call_timeout_s=max(options.call_timeout_s, _PATIENCE_S))
    return judge.evaluate(task, assembled(fixture.path, folder), options)


def outcome(evaluation: Evaluation) -> Status:
    """What the last gate said, that of the held-out cases included."""
    return evaluation.verdicts[-1].status


def check(evaluation: Evaluation, wanted: tuple[Status, ...]) -> None:
    """The status is as wanted, is explained, and no case that failed has a speedup."""
    why = [(verdict.stage, verdict.detail) for verdict in evaluation.verdicts]
    assert outcome(evaluation) in wanted, why
    if outcome(evaluation) is not Status.PASSED:
        assert evaluation.verdicts[-1].detail, "a failure says why"
    if outcome(evaluation) is Status.COMPILE_ERROR:
        assert evaluation.verdicts[-1].stage is Stage.COMPILE
    assert all(case.speedup is None for case in evaluation.cases if case.candidate is not Status.PASSED)


@pytest.mark.parametrize("fixture", shown("CPU"))
def test_on_cpu(cpu_judge: JudgeClient, fixture: CheatFixture, tmp_path: Path) -> None:
    wanted, busy = fixture.expected["CPU"], Status.TIMING_MISMATCH
    for _ in range(_CPU_TRIES):
        evaluation = evaluate(cpu_judge, fixture, tmp_path, CPU_OPTIONS)
        if outcome(evaluation) is not busy or busy in wanted:
            break
    check(evaluation, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("fixture", shown("GPU"))
def test_on_gpu(gpu_judge: JudgeClient, fixture: CheatFixture, tmp_path: Path) -> None:
    check(evaluate(gpu_judge, fixture, tmp_path, GPU_OPTIONS), fixture.expected["GPU"])


@pytest.mark.gpu
@pytest.mark.parametrize(
    "which",
    [
        "pads_three_short_passes_of_four",
        "works_early_in_three_rounds_of_four",
        "says_done_early_in_one_placement",
    ],
)
def test_what_one_placement_decides_earns_no_credit_on_gpu(gpu_judge: JudgeClient, which: str, tmp_path: Path) -> None:
    candidate = assembled(HERE / "cheats" / "rms_norm" / f"{which}.py", tmp_path)
    found = gpu_judge.evaluate(TASKS / TASK_OF["rms_norm"], candidate, GPU_OPTIONS)
    timings = [case.timing for case in found.cases if case.timing is not None]
    assert found.status is not Status.PASSED or all(timing.undecided for timing in timings), found
