"""What happens beside the stages of an evaluation, and how a stage shares out its cases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from arena.judge import crew, evaluate
from arena.judge.crossing import Crossing
from arena.judge.device import Bench
from arena.judge.evaluate import Contest, Workshop
from arena.judge.hosts import Template
from arena.judge.messages import Options
from arena.model.environment import DeviceFacts, Environment
from arena.model.record import Evaluation
from arena.model.task import Task
from arena.model.verdict import Stage, Status
from arena.platforms.cpu import CpuPlatform

QUICK = Options(seeds=1, max_work=1e5, timing_budget_s=0.01, call_timeout_s=5.0)
H200 = DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 140 << 30, 60 << 20)
HOSTS = 2

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    device, template, crossing = CpuPlatform(), Template("cpu", spins=False, interprets=True), Crossing()
    yield Workshop(Bench(device, device.facts()), template, crossing, {})
    crossing.close()
    template.close()


@pytest.fixture
def several_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where Triton compiles in each of them."""
    monkeypatch.setattr(evaluate, "crew_size", lambda *_: HOSTS)


def unheard(stage: Stage, done: int, total: int) -> None:
    """Nobody follows the progress."""


def evaluated(task: Task, shop: Workshop, kernel: Path, options: Options = QUICK) -> Evaluation:
    return Contest(task, kernel, options, shop).run(lambda isolation: Environment(shop.bench.facts, isolation), unheard)


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


def test_the_baselines_host_is_ready_when_its_turn_comes(task: Task, shop: Workshop) -> None:
    """Also where the baseline is known, so that nothing else had to start it."""
    for _ in range(2):
        contest = Contest(task, kernel_of(task), QUICK, shop)
        assert contest._compile(unheard).status is Status.PASSED
        contest._await_baseline()
        assert contest._baselines.subject.host.isolation
        contest._clean_up()


@pytest.mark.usefixtures("several_hosts")
def test_several_hosts_see_what_one_sees(task: Task, shop: Workshop) -> None:
    evaluation = evaluated(task, shop, kernel_of(task))
    assert evaluation.status is Status.PASSED
    assert [verdict.stage for verdict in evaluation.verdicts] == list(Stage)
    assert all(case.timing is not None and case.error_ratio is not None for case in evaluation.cases)


@pytest.mark.usefixtures("several_hosts")
def test_the_first_failure_in_the_tasks_order_is_the_stages(task: Task, shop: Workshop, tmp_path: Path) -> None:
    """However the hosts come by their cases: the earlier ones take longer here."""
    first_line = "import time; time.sleep(1 / y.numel() * 1e3); y.fill_(0.0); return"
    evaluation = evaluated(task, shop, spoiled(task, tmp_path, first_line))
    seen = [case for case in evaluation.cases if case.split == "seen"]
    assert {case.candidate for case in seen} == {Status.WRONG_RESULT}
    assert evaluation.verdicts[-1].detail.startswith(seen[0].label)


@pytest.mark.usefixtures("several_hosts")
def test_after_a_call_without_end_no_case_begins(task: Task, shop: Workshop, tmp_path: Path) -> None:
    patience = structs.replace(QUICK, call_timeout_s=2.0)
    evaluated(task, shop, kernel_of(task), patience)
    started = time.monotonic()
    evaluation = evaluated(task, shop, spoiled(task, tmp_path, "while y.dim() > 0: pass"), patience)
    assert evaluation.status is Status.TIMEOUT
    assert time.monotonic() - started < 4 * patience.call_timeout_s
    ends = [case.candidate for case in evaluation.cases if case.split == "seen"]
    assert 1 <= ends.count(Status.TIMEOUT) <= HOSTS < len(ends)
    assert set(ends) == {Status.TIMEOUT, Status.NOT_RUN}


@pytest.mark.parametrize(("compile_s", "cases", "size"), [(0.1, 5, 1), (0.7, 6, 3), (0.7, 20, 6), (9.0, 4, 4)])
def test_a_host_more_for_every_two_seconds_of_compiling(
    task: Task, monkeypatch: pytest.MonkeyPatch, compile_s: float, cases: int, size: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert crew.crew_size(task, H200, cases, compile_s) == size
    assert crew.crew_size(task, CpuPlatform().facts(), cases, compile_s) == 1
    assert crew.crew_size(task, H200, cases) == min(6, cases)
